import { createUserStore } from '../../db/access/users.js';
import { digestOf, makeUserSecret } from '../../shared/access-token.js';
import type { Environment } from '../../shared/config/config.js';
import { type UserRole, userRoles } from '../../shared/contract.js';
import { StartupError } from '../../shared/runtime/program.js';
import { withDatabase } from '../database.js';
import { actor, checkName, firstName } from '../identities.js';
import { renderTable } from '../output/table.js';

interface PrintOptions {
  json?: boolean;
}

interface AddOptions extends PrintOptions {
  role?: string;
}

/** `quillgate users add`: prints the new user's secret, which cannot be shown again. Throws `StartupError` for a name in use. */
export async function addUser(environment: Environment, name: string, options: AddOptions): Promise<void> {
  checkName(name);
  const role = readRole(options.role);
  const secret = makeUserSecret();
  const user = { name, secretHash: digestOf(secret), ...(role && { role }) };
  const id = await withDatabase(environment, (database) => createUserStore(database, actor()).add(user));
  if (id === undefined)
    throw new StartupError(`There is a user ${name} already; remove it first to get a new secret.`);
  process.stderr.write(`The secret of ${name} for the chat service; it is not shown again.\n`);
  process.stdout.write(options.json ? `${JSON.stringify({ id, name, secret })}\n` : `${secret}\n`);
}

/** `quillgate users list`. */
export async function listUsers(environment: Environment, { json }: PrintOptions): Promise<void> {
  const users = await withDatabase(environment, (database) => createUserStore(database).list());
  const rows = users.map(({ id, name, role, hasSecret, createdAt }) => ({
    id,
    name,
    role,
    hasSecret,
    createdAt,
  }));
  if (json) process.stdout.write(`${JSON.stringify(rows, null, 2)}\n`);
  else if (rows.length === 0) process.stderr.write('There are no users.\n');
  else
    process.stdout.write(
      renderTable(
        ['id', 'name', 'role', 'has secret', 'created'],
        rows.map(({ id, name, role, hasSecret, createdAt }) => [
          id,
          name,
          role,
          hasSecret ? 'yes' : 'no',
          createdAt,
        ]),
      ),
    );
}

/** `quillgate users remove`: also removes the user's tokens. Throws `StartupError` when there is no such user. */
export async function removeUser(environment: Environment, name: string): Promise<void> {
  const { removed, tokensRevoked, isFirst } = await withDatabase(environment, async (database, config) => ({
    ...(await createUserStore(database, actor()).remove(name)),
    isFirst: name === firstName(config),
  }));
  if (!removed)
    throw new StartupError(isFirst ? firstUser : 'There is no such user; see quillgate users list.');
  const tokens = tokensRevoked === 1 ? 'access token' : 'access tokens';
  process.stdout.write(`Removed ${name} and revoked ${tokensRevoked} ${tokens}.\n`);
  if (isFirst) process.stderr.write(`${firstUser}\n`);
}

const firstUser =
  'The environment has a user of this name, whose secret is still good: unset CHAT_USERNAME and CHAT_PASSWORD to end that.';

function readRole(given: string | undefined): UserRole | undefined {
  const role = userRoles.find((known) => known === given);
  if (role === undefined && given !== undefined)
    throw new StartupError(`--role must be one of: ${userRoles.join(', ')}.`);
  return role;
}
