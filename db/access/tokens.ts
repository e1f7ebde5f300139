import { v7 as uuidv7, validate } from 'uuid';
import type { TokenInfo } from '../../shared/contracts/accounts.js';
import type { Scope } from '../../shared/contracts/contract.js';
import { auditOf, unknownActor } from '../audit.js';
import type { Statements } from '../database/client.js';
import type { Drizzle } from '../database/connections.js';
import {
  and,
  asc,
  desc,
  eq,
  gt,
  isNull,
  lt,
  or,
  type Placeholder,
  type SQL,
  sql,
} from '../database/drizzle.js';
import { tokens, users } from '../schema.js';
import { notifyUsersChannel, type UserIdentity } from './users.js';

/** A token that is neither expired, by the database's clock, nor revoked. */
export interface ActiveToken {
  id: string;
  /** SHA-256 of the token. */
  secretHash: Buffer;
  user: UserIdentity;
  scopes: Scope[];
  /** How much longer, in milliseconds by the database's clock; null: without an end. */
  expiresInMs: number | null;
}

/** A new token in the store. */
export interface NewToken {
  /** Name of its user; a missing user is created without a secret. */
  owner: string;
  /** For people: what uses it. */
  name?: string | undefined;
  scopes: Scope[];
  /** Undefined: never. */
  expiresAt: Date | undefined;
  /** SHA-256 of the token. */
  secretHash: Buffer;
}

/** The access tokens in Postgres; the audit names `actor`. Everything may throw `database_unavailable`. */
export function createTokenStore(database: Statements, actor = unknownActor) {
  return {
    create: (token: NewToken) => create(database, actor, token),
    find: async (secretHash: Buffer): Promise<ActiveToken | undefined> => {
      const wanted = and(eq(tokens.secretHash, secretHash), isActive);
      const [found] = await database.run((db) => selectWhere(db, wanted), 'auth');
      return found;
    },
    /** All tokens that `find` would find. */
    listActive: (): Promise<ActiveToken[]> => database.run((db) => selectWhere(db, isActive), 'background'),
    /** Records a use, at most once a minute. */
    markUsed: async (id: string) => {
      const aMinuteAgo = sql`now() - interval '1 minute'`;
      const isStale = or(isNull(tokens.lastUsedAt), lt(tokens.lastUsedAt, aMinuteAgo));
      const wanted = and(eq(tokens.id, id), isStale);
      const used = { lastUsedAt: sql`now()` };
      await database.run((db) => db.update(tokens).set(used).where(wanted));
    },
    /** Oldest first, including expired and revoked ones. */
    list: async () => {
      const rows = await database.run((db) =>
        db.select().from(tokens).orderBy(asc(tokens.createdAt), asc(tokens.id)),
      );
      return rows.map(toInfo);
    },
    /** Newest first, from the first one before the token with an id. */
    listNewest: async ({ before, limit }: { before?: string | undefined; limit: number }) => {
      const isBefore = before === undefined ? undefined : lt(tokens.id, before);
      // By id, which is as good as by time (UUIDv7), and unique.
      const rows = await database.run((db) =>
        db.select().from(tokens).where(isBefore).orderBy(desc(tokens.id)).limit(limit),
      );
      return rows.map(toInfo);
    },
    /** False when there is no such token; a token that is revoked already keeps its time. */
    revoke: (id: string) => revoke(database, actor, id),
  };
}

/** The access tokens in Postgres. Everything may throw `Failure('database_unavailable')`. */
export type TokenStore = ReturnType<typeof createTokenStore>;

async function create(database: Statements, actor: string, token: NewToken): Promise<TokenInfo> {
  const values = { ...token, id: uuidv7(), expiresAt: token.expiresAt ?? null };
  const [row] = await database.run((db) => {
    const created = db.$with('created').as(db.insert(tokens).values(values).returning());
    const targets = sql`select id, owner, scopes, expires_at from ${created}`;
    const after = sql`jsonb_build_object('scopes', target.scopes, 'expiresAt', target.expires_at)`;
    const audited = auditOf(db, { actor, action: 'tokens.create', targets, after });
    const { id, owner, name, scopes, createdAt, expiresAt, lastUsedAt, revokedAt } = created;
    const info = { id, owner, name, scopes, createdAt, expiresAt, lastUsedAt, revokedAt };
    return db
      .with(created, audited)
      .select({ ...info, notify: notifyUsersChannel })
      .from(created);
  });
  if (row === undefined) throw new TypeError('an insert gave no row back');
  return toInfo(row);
}

async function revoke(database: Statements, actor: string, id: string): Promise<boolean> {
  if (!validate(id)) return false;
  const isToken = eq(tokens.id, id);
  const [row] = await database.run((db) => {
    const revoked = db.$with('revoked').as(
      db
        .update(tokens)
        .set({ revokedAt: sql`now()` })
        .where(and(isToken, isNull(tokens.revokedAt)))
        .returning({ id: tokens.id, owner: tokens.owner }),
    );
    const targets = sql`select id, owner from ${revoked}`;
    const audited = auditOf(db, { actor, action: 'tokens.revoke', targets });
    return db
      .with(revoked, audited)
      .select({ id: tokens.id, notify: notifyUsersChannel })
      .from(tokens)
      .where(isToken);
  });
  return row !== undefined;
}

function selectWhere(db: Drizzle, condition: SQL | undefined) {
  const { id, secretHash, scopes, expiresAt } = tokens;
  const user = { id: users.id, name: users.name, createdAt: users.createdAt };
  const expiresInMs = sql<number | null>`(extract(epoch from ${expiresAt} - now()) * 1000)::float8`;
  return db
    .select({ id, secretHash, user, scopes, expiresInMs })
    .from(tokens)
    .innerJoin(users, eq(users.id, tokens.userId))
    .where(condition);
}

/** Neither revoked nor expired. */
const isActive = and(
  isNull(tokens.revokedAt),
  or(isNull(tokens.expiresAt), gt(tokens.expiresAt, sql`now()`)),
);

/** The access token of a caller who writes. Each statement of a write checks that it is still active. */
export interface WriteToken {
  readonly id: string;
  /** Throws the failure of a request whose token is not active. */
  refuse(): never;
}

/** The condition that the token with this id is active, and its user neither removed nor suspended. */
export const isActiveToken = (id: string | Placeholder): SQL =>
  sql`exists (select from ${tokens} join ${users} on ${users.id} = ${tokens.userId} and ${users.suspendedAt} is null
    where ${tokens.id} = ${id} and ${isActive})`;

/** For a write that changed nothing: throws what `refuse` throws unless the token is active. */
export async function requireActive(statements: Statements, token: WriteToken | undefined): Promise<void> {
  if (token === undefined) return;
  const isThere = isActiveToken(token.id);
  const [row] = await statements.run((db) =>
    db.select({ id: tokens.id }).from(tokens).where(isThere).limit(1),
  );
  if (row === undefined) token.refuse();
}

type TokenRow = Omit<typeof tokens.$inferSelect, 'secretHash' | 'userId'>;

function toInfo({ id, owner, name, scopes, ...times }: TokenRow): TokenInfo {
  return {
    id,
    owner,
    ...(name !== null && { name }),
    scopes,
    createdAt: times.createdAt.toISOString(),
    expiresAt: times.expiresAt?.toISOString() ?? null,
    lastUsedAt: times.lastUsedAt?.toISOString() ?? null,
    revokedAt: times.revokedAt?.toISOString() ?? null,
  };
}
