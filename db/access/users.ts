import { v5 as uuidv5 } from 'uuid';
import type { AuditAction, UserInfo } from '../../shared/contracts/accounts.js';
import type { UserRole } from '../../shared/contracts/contract.js';
import { auditOf, unknownActor } from '../audit.js';
import type { Statements } from '../database/client.js';
import type { Drizzle } from '../database/connections.js';
import {
  and,
  asc,
  desc,
  eq,
  exists,
  gt,
  inArray,
  isNull,
  type PgUpdateSetSource,
  type SQL,
  type SQLWrapper,
  sql,
} from '../database/drizzle.js';
import { audit, sessions, tokens, users } from '../schema.js';

/** The user of a secret or a token. */
export interface UserIdentity {
  id: string;
  name: string;
  createdAt: Date;
}

/** The environment's user, whose id each process makes from the name, and who counts as the oldest of that name. */
export const firstUserOf = (name: string): UserIdentity => ({
  id: uuidv5(name, firstUsers),
  name,
  createdAt: new Date(0),
});

/** The namespace of these ids (RFC 9562, 5.5): a random UUID. */
const firstUsers = '3f0c4f2e-5a44-4c0b-9a83-0f3c7a1d7b1e';

/** The hash that a user's secret has to match. */
export interface UserDigest extends UserIdentity {
  /** SHA-256 of the secret; empty for a user who has none. */
  secretHash: Buffer;
  role: UserRole;
  /** Absent or null for a user who is not suspended. */
  suspendedAt?: Date | null;
}

/** A new user in the store. */
export interface NewUser {
  name: string;
  /** SHA-256 of the secret. */
  secretHash: Buffer;
  /** `user` by default. */
  role?: UserRole;
}

interface ListPart {
  after?: string | undefined;
  names?: readonly string[];
  limit?: number;
}

/** The channel that is notified, without a payload, of every committed change of the users and their tokens. */
export const usersChannel = 'quillgate_users';

/** In the same statement as the change, so that neither happens without the other. */
export const notifyUsersChannel = sql<string>`pg_notify(${usersChannel}, '')`;

/** The users in Postgres; the audit names `actor`. Everything may throw `database_unavailable`. */
export function createUserStore(database: Statements, actor = unknownActor) {
  return {
    /** Gives the user's id. A user with only tokens gets secret and role; undefined for one who has a secret. */
    add: (user: NewUser) => add(database, actor, user),
    /** Removes the user, revokes the user's access tokens, and ends the sessions; does nothing without such a user. */
    remove: (name: string) => remove(database, actor, name),
    /** Replaces the user's secret by another SHA-256, and ends the sessions. Gives the id; undefined without a user. */
    resetSecret: (name: string, secretHash: Buffer) =>
      change(database, actor, { name, action: 'users.reset', set: { secretHash } }),
    /** A suspended user may do nothing, and the sessions end. False when there is no such user. */
    setSuspended: async (name: string, isSuspended: boolean): Promise<boolean> => {
      const set = { suspendedAt: isSuspended ? sql`now()` : null };
      const isDue = sql`(${users.suspendedAt} is null) = ${isSuspended}`;
      const action = isSuspended ? 'users.suspend' : 'users.resume';
      return (await change(database, actor, { name, action, set, isDue })) !== undefined;
    },
    /** Ids of the users removed in the last `ms` milliseconds, in order of removal, the last thousand at most. */
    removedWithin: (ms: number) => removedWithin(database, ms),
    /** By name, from the first one after a name, or those of these names; all, unless there is a limit. */
    list: (part?: ListPart) => list(database, part),
    digests: (): Promise<UserDigest[]> => {
      const { id, name, createdAt, secretHash, role, suspendedAt } = users;
      const fields = { id, name, createdAt, secretHash, role, suspendedAt };
      return database.run((db) => db.select(fields).from(users), 'background');
    },
  };
}

/** The users in Postgres. Everything may throw `Failure('database_unavailable')`. */
export type UserStore = ReturnType<typeof createUserStore>;

/** From the audit, which has every removal, by the API or the command line. */
async function removedWithin(database: Statements, ms: number): Promise<string[]> {
  const since = sql`${audit.at} > now() - ${ms} * interval '1 millisecond'`;
  const removed = and(eq(audit.action, 'users.remove'), since);
  const rows = await database.run(
    (db) =>
      db.select({ id: audit.targetId }).from(audit).where(removed).orderBy(desc(audit.at)).limit(maxRemoved),
    'background',
  );
  return rows.map(({ id }) => id).reverse();
}

const maxRemoved = 1000;

async function list(database: Statements, { after, names, limit }: ListPart = {}): Promise<UserInfo[]> {
  const rows = await database.run((db) => {
    const isAfter = after === undefined ? undefined : gt(users.name, after);
    const isNamed = names && inArray(users.name, [...names]);
    const sorted = db.select().from(users).where(and(isAfter, isNamed)).orderBy(asc(users.name));
    return limit === undefined ? sorted : sorted.limit(limit);
  });
  return rows.map(({ id, name, role, secretHash, createdAt, suspendedAt }) => ({
    id,
    name,
    role,
    hasSecret: secretHash.length > 0,
    createdAt: createdAt.toISOString(),
    ...(suspendedAt && { suspendedAt: suspendedAt.toISOString() }),
  }));
}

async function add(database: Statements, actor: string, user: NewUser): Promise<string | undefined> {
  const { name: _, ...given } = user;
  const [row] = await database.run((db) => {
    const added = db.$with('added').as(
      db
        .insert(users)
        .values(user)
        .onConflictDoUpdate({ target: users.name, set: given, setWhere: sql`${users.secretHash} = ''` })
        .returning({ id: users.id, role: users.role }),
    );
    const targets = sql`select id, ${user.name}::text, role from ${added}`;
    const after = sql`jsonb_build_object('role', target.role)`;
    const audited = auditOf(db, { actor, action: 'users.add', targets, after });
    return db.with(added, audited).select({ id: added.id, notify: notifyUsersChannel }).from(added);
  });
  return row?.id;
}

async function remove(database: Statements, actor: string, name: string) {
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
    const ended = endSessionsOf(db, name, removed);
    const named = (changed: SQLWrapper) => sql`select id, ${name}::text from ${changed}`;
    const audited = auditOf(db, { actor, action: 'users.remove', targets: named(removed) });
    const revocations = auditOf(db, { actor, action: 'tokens.revoke', targets: named(revoked) });
    return db
      .with(removed, revoked, ended, audited, revocations)
      .select({
        notify: notifyUsersChannel,
        tokensRevoked: sql<number>`(select count(*)::int from ${revoked})`,
      })
      .from(removed);
  });
  return { removed: row !== undefined, tokensRevoked: row?.tokensRevoked ?? 0 };
}

interface UserChange {
  name: string;
  action: AuditAction;
  set: PgUpdateSetSource<typeof users>;
  /** Whether there is anything to change; otherwise it is not audited. */
  isDue?: SQL;
}

/** Changes a user and ends the sessions. Gives the id, also where nothing was due; undefined without a user. */
async function change(database: Statements, actor: string, { name, action, set, isDue }: UserChange) {
  const isNamed = eq(users.name, name);
  const [row] = await database.run((db) => {
    const changed = db
      .$with('changed')
      .as(db.update(users).set(set).where(and(isNamed, isDue)).returning({ id: users.id }));
    const ended = endSessionsOf(db, name, changed);
    const audited = auditOf(db, { actor, action, targets: sql`select id, ${name}::text from ${changed}` });
    return db
      .with(changed, ended, audited)
      .select({ id: users.id, notify: notifyUsersChannel })
      .from(users)
      .where(isNamed);
  });
  return row?.id;
}

/** Records that an operator cancels the chat of the user with this id; the name is that of the database if absent. */
export async function auditCancel(
  database: Statements,
  { actor, id, user, userName }: { actor: string; id: string; user: string; userName?: string | undefined },
): Promise<void> {
  const name = sql`(select ${users.name} from ${users} where ${users.id}::text = ${user})`;
  const targetName = sql`coalesce(${userName ?? null}::text, ${name}, ${user})`;
  await database.run((db) =>
    db.insert(audit).values({ actor, action: 'chats.cancel', targetId: id, targetName }),
  );
}

/** By the name: a user of the environment has an id of its own. */
const endSessionsOf = (db: Drizzle, name: string, changed: SQLWrapper) =>
  db
    .$with('ended', {})
    .as(
      sql`delete from ${sessions} where ${eq(sessions.userName, name)} and exists (select from ${changed})`,
    );
