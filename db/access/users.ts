import { v5 as uuidv5 } from 'uuid';
import type { UserRole } from '../../shared/contract.js';
import { auditOf, unknownActor } from '../audit.js';
import type { Database } from '../database/client.js';
import { asc, eq, exists, isNull, sql } from '../database/drizzle.js';
import { tokens, users } from '../schema.js';

/** A user as the operators see it. */
export interface UserInfo {
  /** UUID; another one when the name is given again after a removal. */
  id: string;
  name: string;
  role: UserRole;
  /** Whether the user may chat; a user without a secret has only tokens. */
  hasSecret: boolean;
  /** RFC 3339 in UTC. */
  createdAt: string;
}

/** Whom a secret or a token stands for. */
export interface UserIdentity {
  id: string;
  name: string;
  createdAt: Date;
}

/**
 * The user that the environment names. Every process has to know them without the database, and be of one mind at every start, so the
 * id is made from the name, and the name counts as theirs since ever.
 */
export const firstUserOf = (name: string): UserIdentity => ({
  id: uuidv5(name, firstUsers),
  name,
  createdAt: new Date(0),
});

/** The namespace of their ids (RFC 9562, 5.5): a UUID that was drawn for it. */
const firstUsers = '3f0c4f2e-5a44-4c0b-9a83-0f3c7a1d7b1e';

/** What a user's secret is checked against. */
export interface UserDigest extends UserIdentity {
  /** SHA-256 of the secret; empty for a user who has none. */
  secretHash: Buffer;
}

/** What a new user is stored with. */
export interface NewUser {
  name: string;
  /** SHA-256 of the secret. */
  secretHash: Buffer;
  /** `user` by default. */
  role?: UserRole;
}

/** The users in Postgres. Everything may throw `Failure('database_unavailable')`. */
export interface UserStore {
  /**
   * Gives the user's id. A user of this name who has only tokens gets the secret, and the role if one is given; undefined when
   * there is one with a secret, who then stays as is.
   */
  add(user: NewUser): Promise<string | undefined>;
  /** Removes the user and revokes the access tokens that the name owns; without such a user nothing happens. */
  remove(name: string): Promise<{ removed: boolean; tokensRevoked: number }>;
  /** By name. */
  list(): Promise<UserInfo[]>;
  digests(): Promise<UserDigest[]>;
}

/** The channel on which every change of the users is told, with no payload, once it is committed. */
export const usersChannel = 'quillgate_users';

/** In the same statement as the change, so that neither happens without the other. */
const tell = sql<string>`pg_notify(${usersChannel}, '')`;

/** The `actor` is whom the audit names for changes. */
export function createUserStore(database: Database, actor = unknownActor): UserStore {
  return {
    add: (user) => add(database, actor, user),
    remove: (name) => remove(database, actor, name),
    list: async () => {
      const rows = await database.run((db) => db.select().from(users).orderBy(asc(users.name)));
      return rows.map(({ id, name, role, secretHash, createdAt }) => ({
        id,
        name,
        role,
        hasSecret: secretHash.length > 0,
        createdAt: createdAt.toISOString(),
      }));
    },
    digests: () => {
      const { id, name, createdAt, secretHash } = users;
      return database.run((db) => db.select({ id, name, createdAt, secretHash }).from(users), 'background');
    },
  };
}

async function add(database: Database, actor: string, user: NewUser): Promise<string | undefined> {
  const { name: _, ...given } = user;
  const [row] = await database.run((db) => {
    const added = db.$with('added').as(
      db
        .insert(users)
        .values(user)
        .onConflictDoUpdate({ target: users.name, set: given, setWhere: sql`${users.secretHash} = ''` })
        .returning({ id: users.id }),
    );
    const targets = sql`select id, ${user.name}::text from ${added}`;
    const noted = db.$with('noted', {}).as(auditOf({ actor, action: 'users.add', targets }));
    return db.with(added, noted).select({ id: added.id, tell }).from(added);
  });
  return row?.id;
}

async function remove(database: Database, actor: string, name: string) {
  const [row] = await database.run((db) => {
    const removed = db
      .$with('removed')
      .as(db.delete(users).where(eq(users.name, name)).returning({ id: users.id }));
    const revoked = db.$with('revoked').as(
      db
        .update(tokens)
        .set({ revokedAt: sql`now()` })
        .where(
          sql`${eq(tokens.owner, name)} and ${isNull(tokens.revokedAt)} and ${exists(db.select().from(removed))}`,
        )
        .returning({ id: tokens.id }),
    );
    const noted = db
      .$with('noted', {})
      .as(auditOf({ actor, action: 'users.remove', targets: sql`select id, ${name}::text from ${removed}` }));
    const revocations = db
      .$with('revocations', {})
      .as(
        auditOf({ actor, action: 'tokens.revoke', targets: sql`select id, ${name}::text from ${revoked}` }),
      );
    return db
      .with(removed, revoked, noted, revocations)
      .select({ tell, tokensRevoked: sql<number>`(select count(*)::int from ${revoked})` })
      .from(removed);
  });
  return { removed: row !== undefined, tokensRevoked: row?.tokensRevoked ?? 0 };
}
