import { createUserStore } from '../db/users.js';
import { digestOf, makeUserSecret } from '../shared/access-token.js';
import { type Environment, parseConfig } from '../shared/config.js';
import { CannotStart } from '../shared/program.js';
import { withDatabase } from './database.js';
import { checkName } from './name.js';
import { renderTable } from './table.js';

interface PrintOptions {
  json?: boolean;
}

/** `quillgate users add`: prints the new user's secret, this once and alone. Throws `CannotStart` for a name in use. */
export async function addUser(environment: Environment, name: string, { json }: PrintOptions): Promise<void> {
  if (checkName(name) === parseConfig(environment, 'command').CHAT_USERNAME) throw new CannotStart(firstUser);
  const secret = makeUserSecret();
  await withDatabase(environment, async (database) => {
    const added = await createUserStore(database).add(name, digestOf(secret));
    if (!added)
      throw new CannotStart(`There is a user ${name} already; remove it first to get a new secret.`);
  });
  process.stderr.write(`The secret of ${name} for the chat service; it is not shown again.\n`);
  process.stdout.write(json ? `${JSON.stringify({ name, secret })}\n` : `${secret}\n`);
}

const firstUser = 'The environment has this user already (CHAT_USERNAME); its secret is CHAT_PASSWORD.';

/** `quillgate users list`. */
export async function listUsers(environment: Environment, { json }: PrintOptions): Promise<void> {
  const users = await withDatabase(environment, (database) => createUserStore(database).list());
  const rows = users.map(({ name, createdAt }) => ({ name, createdAt }));
  if (json) process.stdout.write(`${JSON.stringify(rows, null, 2)}\n`);
  else if (rows.length === 0) process.stderr.write('There are no users.\n');
  else
    process.stdout.write(
      renderTable(
        ['name', 'created'],
        rows.map(({ name, createdAt }) => [name, createdAt]),
      ),
    );
}

/** `quillgate users remove`: takes the user's tokens away as well. Throws `CannotStart` when there is no such user. */
export async function removeUser(environment: Environment, name: string): Promise<void> {
  const { removed, tokensRevoked } = await withDatabase(environment, async (database, { CHAT_USERNAME }) => {
    if (name === CHAT_USERNAME)
      throw new CannotStart(
        'This user is the one of the environment: unset CHAT_USERNAME and CHAT_PASSWORD.',
      );
    return createUserStore(database).remove(name);
  });
  if (!removed) throw new CannotStart('There is no such user; see quillgate users list.');
  const tokens = tokensRevoked === 1 ? 'access token' : 'access tokens';
  process.stdout.write(`Removed ${name} and revoked ${tokensRevoked} ${tokens}.\n`);
}
