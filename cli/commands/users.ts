import { createUserStore } from '../../db/access/users.js';
import type { Environment } from '../../shared/config/config.js';
import { userRoles } from '../../shared/contracts/contract.js';
import { digestOf, makeUserSecret } from '../../shared/credential-forms.js';
import { StartupError } from '../../shared/runtime/program.js';
import { actor, checkName, readNames, secretVariablesOf, withDatabase } from '../database.js';
import { printList } from '../output/fleet-tables.js';

interface PrintOptions {
  json?: boolean;
}

/** `quillgate users add`: prints the new user's secret, once. Throws `StartupError` for a name in use. */
export async function addUser(
  environment: Environment,
  name: string,
  options: PrintOptions & { role?: string },
): Promise<void> {
  checkName(name);
  const [role] = readNames([options.role ?? []].flat(), userRoles, '--role must be one of');
  const secret = makeUserSecret();
  const user = { name, secretHash: digestOf(secret), ...(role && { role }) };
  const id = await withDatabase(environment, (database) => createUserStore(database, actor()).add(user));
  if (id === undefined)
    throw new StartupError(`There is a user ${name} already; quillgate users reset gives a new secret.`);
  process.stderr.write(`The secret of ${name} for the chat service; it is not shown again.\n`);
  process.stdout.write(options.json ? `${JSON.stringify({ id, name, secret })}\n` : `${secret}\n`);
}

/** `quillgate users list`. */
export async function listUsers(environment: Environment, { json }: PrintOptions): Promise<void> {
  const users = await withDatabase(environment, (database) => createUserStore(database).list());
  printList(users, {
    json,
    none: 'There are no users.',
    columns: {
      id: ({ id }) => id,
      name: ({ name }) => name,
      role: ({ role }) => role,
      'has secret': ({ hasSecret }) => (hasSecret ? 'yes' : 'no'),
      created: ({ createdAt }) => createdAt,
      suspended: ({ suspendedAt }) => suspendedAt ?? null,
    },
  });
}

/** `quillgate users remove`: also removes the user's tokens. Throws `StartupError` when there is no such user. */
export async function removeUser(environment: Environment, name: string): Promise<void> {
  const { removed, tokensRevoked, variables } = await withDatabase(environment, async (database, config) => ({
    ...(await createUserStore(database, actor()).remove(name)),
    variables: secretVariablesOf(config, name),
  }));
  if (!removed) throw noSuchUser(variables);
  const tokens = tokensRevoked === 1 ? 'access token' : 'access tokens';
  process.stdout.write(`Removed ${name} and revoked ${tokensRevoked} ${tokens}.\n`);
  if (variables) process.stderr.write(`${ofEnvironment(variables)}\n`);
}

/** `quillgate users suspend` and `resume`. Throws `StartupError` when there is no such user. */
export async function suspendUser(
  environment: Environment,
  name: string,
  { isSuspended }: { isSuspended: boolean },
): Promise<void> {
  const { isThere, variables } = await withDatabase(environment, async (database, config) => {
    const isThere = await createUserStore(database, actor()).setSuspended(name, isSuspended);
    return { isThere, variables: secretVariablesOf(config, name) };
  });
  if (!isThere) throw noSuchUser(variables);
  const done = isSuspended ? 'Suspended' : 'Resumed';
  process.stdout.write(`${done} ${name}.\n`);
}

/**
 * `quillgate users reset`: prints a new secret, which cannot be shown again; the old one and the user's sessions end.
 * Throws `StartupError` when there is no such user.
 */
export async function resetUser(
  environment: Environment,
  name: string,
  options: PrintOptions,
): Promise<void> {
  const secret = makeUserSecret();
  const { id, variables } = await withDatabase(environment, async (database, config) => ({
    id: await createUserStore(database, actor()).resetSecret(name, digestOf(secret)),
    variables: secretVariablesOf(config, name),
  }));
  if (id === undefined) throw noSuchUser(variables);
  process.stderr.write(`The new secret of ${name}; it is not shown again. The old one is no longer valid.\n`);
  if (variables) process.stderr.write(`${ofEnvironment(variables)}\n`);
  process.stdout.write(options.json ? `${JSON.stringify({ id, name, secret })}\n` : `${secret}\n`);
}

const noSuchUser = (variables: string | undefined): StartupError =>
  new StartupError(variables ? ofEnvironment(variables) : 'There is no such user; see quillgate users list.');

const ofEnvironment = (variables: string): string =>
  `The environment still lets a user of this name in; change or unset ${variables} to end that.`;
