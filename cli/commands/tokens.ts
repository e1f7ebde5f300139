import { createTokenStore } from '../../db/access/tokens.js';
import { createUserStore } from '../../db/access/users.js';
import type { Environment } from '../../shared/config/config.js';
import { scopes } from '../../shared/contracts/contract.js';
import { digestOf, makeAccessToken, tokenName } from '../../shared/credential-forms.js';
import { StartupError } from '../../shared/runtime/program.js';
import { actor, checkName, nameInEnvironment, ownerByDefault, readNames, withDatabase } from '../database.js';
import { parseTime, printList } from '../output/fleet-tables.js';

interface CreateOptions {
  owner?: string;
  name?: string;
  /** The values of the option; each may be a comma-separated list. */
  scope?: string[];
  expires: string;
  json?: boolean;
}

/** `quillgate tokens create`: prints the new token, once. Throws `StartupError` for bad options. */
export async function createToken(environment: Environment, options: CreateOptions): Promise<void> {
  const named = (options.scope ?? ['blogs:write']).flatMap((list) => list.split(','));
  const granted = readNames(named, scopes, '--scope must be some of');
  const expiresAt = parseExpiry(options.expires, new Date());
  const { name: label } = options;
  if (label !== undefined && !tokenName.safeParse(label).success) throw new StartupError(needsName);
  const secret = makeAccessToken();
  const { id, owner, createdAt, ...info } = await withDatabase(environment, async (database, config) => {
    const asOperator = granted.includes('admin');
    const operator = asOperator ? nameInEnvironment('ADMIN', config) : undefined;
    const given = options.owner ?? operator;
    const name = checkName(given ?? ownerByDefault(config));
    const [stored] = await createUserStore(database).list({ names: [name] });
    if (asOperator && name !== operator && stored?.role !== 'admin') throw new StartupError(needsOperator);
    if (given === undefined && stored === undefined) throw new StartupError(needsOwner);
    const token = { name: label, scopes: granted, expiresAt, secretHash: digestOf(secret) };
    return createTokenStore(database, actor()).create({ owner: name, ...token });
  });
  const facts = {
    owner,
    ...(info.name !== undefined && { name: info.name }),
    scopes: info.scopes,
    createdAt,
    expiresAt: info.expiresAt,
  };
  const until = info.expiresAt === null ? 'without an end' : `until ${info.expiresAt}`;
  process.stderr.write(
    `Access token ${id} of ${owner} for ${info.scopes.join(', ')}, ${until}; it is not shown again.\n`,
  );
  process.stdout.write(options.json ? `${JSON.stringify({ id, token: secret, ...facts })}\n` : `${secret}\n`);
}

const needsName = '--name must have 1 to 64 characters, and no control characters.';
const needsOwner =
  'Name the owner of the token: bin/quillgate tokens create --owner NAME. bin/quillgate users list has the names, and bin/quillgate users add NAME makes a user.';
const needsOperator =
  'A token with the scope admin needs an operator: --owner must name a user with the role admin, such as one of\n  bin/quillgate users add NAME --role admin';

/** `quillgate tokens list`, including revoked and expired ones. */
export async function listTokens(environment: Environment, { json }: { json?: boolean }): Promise<void> {
  const tokens = await withDatabase(environment, (database) => createTokenStore(database).list());
  printList(tokens, {
    json,
    none: 'There are no access tokens.',
    columns: {
      id: ({ id }) => id,
      owner: ({ owner }) => owner,
      name: ({ name }) => name ?? null,
      scopes: ({ scopes }) => scopes.join(','),
      created: ({ createdAt }) => createdAt,
      expires: ({ expiresAt }) => expiresAt ?? 'never',
      'last used': ({ lastUsedAt }) => lastUsedAt,
      revoked: ({ revokedAt }) => revokedAt,
    },
  });
}

/** `quillgate tokens revoke`: at once and for good. Throws `StartupError` when there is no such token. */
export async function revokeToken(environment: Environment, id: string): Promise<void> {
  const known = await withDatabase(environment, (database) => createTokenStore(database, actor()).revoke(id));
  if (!known) throw new StartupError('There is no access token with this id; see quillgate tokens list.');
  process.stdout.write(`Revoked ${id}.\n`);
}

const unitsMs = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * The expiry of a new token: `30m`, `12h` or `90d` from now, a time in the future (a day alone means its start in UTC),
 * or undefined for `never`. Throws `StartupError` with a message that does not quote the text.
 */
export function parseExpiry(text: string, now: Date): Date | undefined {
  if (text === 'never') return undefined;
  const end = afterSpan(text, now) ?? parseTime(text);
  if (end === undefined)
    throw new StartupError(
      '--expires must be like 30m, 12h or 90d, a day (2030-12-31), a time (RFC 3339), or never.',
    );
  const time = new Date(end);
  if (time <= now) throw new StartupError('--expires must be in the future.');
  return time;
}

function afterSpan(text: string, now: Date): number | undefined {
  const [, amount, unit] = /^(\d{1,6})([mhd])$/.exec(text) ?? [];
  if (amount === undefined) return undefined;
  return now.getTime() + Number(amount) * unitsMs[unit as keyof typeof unitsMs];
}
