import type { Database } from './client.js';
import { asc, eq, exists, isNull, sql } from './drizzle.js';
import { tokens, users } from './schema.js';

/** A chat user as the operators see it. */
export interface UserInfo {
  name: string;
  /** RFC 3339 in UTC. */
  createdAt: string;
}

/** What a user's secret is checked against. */
export interface UserDigest {
  name: string;
  /** SHA-256 of the secret. */
  secretHash: Buffer;
}

/** The chat users in Postgres. Everything may throw `Failure('database_unavailable')`. */
export interface UserStore {
  /** False when there is a user of this name already, who then stays as is. */
  add(name: string, secretHash: Buffer): Promise<boolean>;
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

export function createUserStore(database: Database): UserStore {
  return {
    add: (name, secretHash) => add(database, { name, secretHash }),
    remove: (name) => remove(database, name),
    list: async () => {
      const { name, createdAt } = users;
      const rows = await database.run((db) => db.select({ name, createdAt }).from(users).orderBy(asc(name)));
      return rows.map((row) => ({ name: row.name, createdAt: row.createdAt.toISOString() }));
    },
    digests: () =>
      database.run(
        (db) => db.select({ name: users.name, secretHash: users.secretHash }).from(users),
        'upkeep',
      ),
  };
}

async function add(database: Database, user: UserDigest): Promise<boolean> {
  const rows = await database.run((db) => {
    const added = db
      .$with('added')
      .as(db.insert(users).values(user).onConflictDoNothing().returning({ name: users.name }));
    return db.with(added).select({ tell }).from(added);
  });
  return rows.length > 0;
}

async function remove(database: Database, name: string) {
  const [row] = await database.run((db) => {
    const removed = db
      .$with('removed')
      .as(db.delete(users).where(eq(users.name, name)).returning({ name: users.name }));
    const revoked = db.$with('revoked').as(
      db
        .update(tokens)
        .set({ revokedAt: sql`now()` })
        .where(
          sql`${eq(tokens.owner, name)} and ${isNull(tokens.revokedAt)} and ${exists(db.select().from(removed))}`,
        )
        .returning({ id: tokens.id }),
    );
    return db
      .with(removed, revoked)
      .select({ tell, tokensRevoked: sql<number>`(select count(*)::int from ${revoked})` })
      .from(removed);
  });
  return { removed: row !== undefined, tokensRevoked: row?.tokensRevoked ?? 0 };
}
