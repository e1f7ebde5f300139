import { v7 as uuidv7, validate } from 'uuid';
import type { Scope } from '../shared/contract.js';
import type { Database } from './client.js';
import { and, asc, eq, gt, isNull, lt, or, sql } from './drizzle.js';
import { tokens, users } from './schema.js';
import type { UserIdentity } from './users.js';

/** An access token as the operators see it; times are RFC 3339 in UTC. */
export interface TokenInfo {
  /** UUIDv7; says nothing about the token itself. */
  id: string;
  owner: string;
  scopes: Scope[];
  createdAt: string;
  /** Null: never. */
  expiresAt: string | null;
  /** To the minute. */
  lastUsedAt: string | null;
  revokedAt: string | null;
}

/** What a token that is good at this moment allows, and to whom. */
export interface TokenGrant {
  id: string;
  /** SHA-256 of the token. */
  secretHash: Buffer;
  user: UserIdentity;
  scopes: Scope[];
  /** Whether the last use was noted within the minute. */
  usedRecently: boolean;
}

/** What a new token is stored with. */
export interface NewToken {
  /** Name of its user, who is made where there is none: without a secret. */
  owner: string;
  scopes: Scope[];
  /** Undefined: never. */
  expiresAt: Date | undefined;
  /** SHA-256 of the token. */
  secretHash: Buffer;
}

/** The access tokens in Postgres. Everything may throw `Failure('database_unavailable')`. */
export interface TokenStore {
  create(token: NewToken): Promise<TokenInfo>;
  /** Finds a token that is neither expired, by the database's clock, nor revoked. */
  find(secretHash: Buffer): Promise<TokenGrant | undefined>;
  /** Notes a use, at most once a minute. */
  markUsed(id: string): Promise<void>;
  /** Oldest first; the expired and revoked ones too. */
  list(): Promise<TokenInfo[]>;
  /** False when there is no such token; one that was revoked before keeps its time. */
  revoke(id: string): Promise<boolean>;
}

const noted = sql`now() - interval '1 minute'`;

export function createTokenStore(database: Database): TokenStore {
  return {
    create: async (token) => {
      const id = uuidv7();
      const values = { ...token, id, expiresAt: token.expiresAt ?? null };
      const [row] = await database.run((db) => db.insert(tokens).values(values).returning());
      if (row === undefined) throw new TypeError('an insert gave no row back');
      return toInfo(row);
    },
    find: (secretHash) => find(database, secretHash),
    markUsed: async (id) => {
      const stale = or(isNull(tokens.lastUsedAt), lt(tokens.lastUsedAt, noted));
      const used = { lastUsedAt: sql`now()` };
      await database.run((db) =>
        db
          .update(tokens)
          .set(used)
          .where(and(eq(tokens.id, id), stale)),
      );
    },
    list: async () => {
      const rows = await database.run((db) =>
        db.select().from(tokens).orderBy(asc(tokens.createdAt), asc(tokens.id)),
      );
      return rows.map(toInfo);
    },
    revoke: async (id) => {
      if (!validate(id)) return false;
      const revoked = { revokedAt: sql`coalesce(${tokens.revokedAt}, now())` };
      const rows = await database.run((db) =>
        db.update(tokens).set(revoked).where(eq(tokens.id, id)).returning({ id: tokens.id }),
      );
      return rows.length > 0;
    },
  };
}

async function find(database: Database, secretHash: Buffer): Promise<TokenGrant | undefined> {
  const good = and(
    eq(tokens.secretHash, secretHash),
    isNull(tokens.revokedAt),
    or(isNull(tokens.expiresAt), gt(tokens.expiresAt, sql`now()`)),
  );
  const { id, scopes } = tokens;
  const usedRecently = sql<boolean>`coalesce(${tokens.lastUsedAt} >= ${noted}, false)`;
  const user = { id: users.id, name: users.name, createdAt: users.createdAt };
  const fields = { id, secretHash: tokens.secretHash, user, scopes, usedRecently };
  const [row] = await database.run(
    (db) => db.select(fields).from(tokens).innerJoin(users, eq(users.id, tokens.userId)).where(good),
    'look-up',
  );
  return row;
}

function toInfo({ id, owner, scopes, ...times }: typeof tokens.$inferSelect): TokenInfo {
  return {
    id,
    owner,
    scopes,
    createdAt: times.createdAt.toISOString(),
    expiresAt: times.expiresAt?.toISOString() ?? null,
    lastUsedAt: times.lastUsedAt?.toISOString() ?? null,
    revokedAt: times.revokedAt?.toISOString() ?? null,
  };
}
