import type { UserRole } from '../../shared/contracts/contract.js';
import type { Database } from '../database/client.js';
import type { Drizzle } from '../database/connections.js';
import { and, desc, eq, gt, inArray, lte, or, type SQL, sql } from '../database/drizzle.js';
import { sessions, users } from '../schema.js';
import { notifyUsersChannel, type UserIdentity } from './users.js';

/** A session of the console that has not ended. */
export interface ActiveSession {
  /** SHA-256 of what the cookie holds. */
  readonly digest: Buffer;
  readonly userId: string;
  readonly userName: string;
  readonly expiresAt: Date;
  /** How much longer, in milliseconds by the database's clock. */
  readonly expiresInMs: number;
  /** The user with the name and secret that it was opened with; null without one, as for the environment's user. */
  readonly user: (UserIdentity & { readonly role: UserRole }) | null;
}

/** A new session in the store. */
export interface NewSession {
  digest: Buffer;
  user: Pick<UserIdentity, 'id' | 'name'>;
  /** SHA-256 of the user's secret in the database, as it was when it was checked; absent with the environment's. */
  secretHash?: Buffer | undefined;
  lifetimeMs: number;
}

/** More would be a program that signs in again and again. */
const maxPerUser = 100;

/** The console's sessions in Postgres. Changes notify the users' channel; all may throw `database_unavailable`. */
export function createSessionStore(database: Database) {
  return {
    /** Returns when it ends. Removes what has expired, and the oldest of a user who would have more than 100. */
    create: (session: NewSession) => create(database, session),
    /** One of these, if it has not ended by the clock of the database. */
    find: async (digests: readonly Buffer[]): Promise<ActiveSession | undefined> => {
      const wanted = and(inArray(sessions.digest, [...digests]), isActive);
      const [found] = await database.run((db) => selectWhere(db, wanted), 'auth');
      return found;
    },
    /** All that `find` would find. */
    listActive: (): Promise<ActiveSession[]> => database.run((db) => selectWhere(db, isActive), 'background'),
    /** Ends one session; one that has ended already is no error. */
    end: (digest: Buffer) => end(database, eq(sessions.digest, digest)),
    endAll: (userName: string) => end(database, eq(sessions.userName, userName)),
  };
}

export type SessionStore = ReturnType<typeof createSessionStore>;

const isActive = gt(sessions.expiresAt, sql`now()`);

function selectWhere(db: Drizzle, condition: SQL | undefined) {
  const { digest, userId, userName, expiresAt } = sessions;
  const { id, name, createdAt, role } = users;
  const expiresInMs = sql<number>`(extract(epoch from ${expiresAt} - now()) * 1000)::float8`;
  return db
    .select({ digest, userId, userName, expiresAt, expiresInMs, user: { id, name, createdAt, role } })
    .from(sessions)
    .leftJoin(users, and(eq(users.name, sessions.userName), eq(users.secretHash, sessions.secretHash)))
    .where(condition);
}

async function create(
  database: Database,
  { digest, user, secretHash, lifetimeMs }: NewSession,
): Promise<Date> {
  const expiresAt = sql`now() + ${lifetimeMs} * interval '1 millisecond'`;
  const [row] = await database.run((db) => {
    const tooMany = db
      .select({ digest: sessions.digest })
      .from(sessions)
      .where(eq(sessions.userName, user.name))
      .orderBy(desc(sessions.createdAt), desc(sessions.digest))
      .offset(maxPerUser - 1);
    const isOver = or(lte(sessions.expiresAt, sql`now()`), inArray(sessions.digest, tooMany));
    const ended = db
      .$with('ended')
      .as(db.delete(sessions).where(isOver).returning({ digest: sessions.digest }));
    const created = db.$with('created').as(
      db
        .insert(sessions)
        .values({ digest, userId: user.id, userName: user.name, expiresAt, secretHash: secretHash ?? null })
        .returning({ expiresAt: sessions.expiresAt }),
    );
    return db
      .with(ended, created)
      .select({ expiresAt: created.expiresAt, notify: notifyUsersChannel })
      .from(created);
  });
  if (row === undefined) throw new TypeError('an insert gave no row back');
  return row.expiresAt;
}

async function end(database: Database, condition: SQL): Promise<void> {
  await database.run((db) => {
    const ended = db
      .$with('ended')
      .as(db.delete(sessions).where(condition).returning({ digest: sessions.digest }));
    return db.with(ended).select({ notify: notifyUsersChannel }).from(ended).limit(1);
  });
}
