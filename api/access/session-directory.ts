import { randomBytes } from 'node:crypto';
import type { ActiveSession, SessionStore } from '../../db/access/sessions.js';
import type { UserIdentity } from '../../db/access/users.js';
import { digestOf } from '../../shared/access-token.js';
import type { Caller, CallerSession, SignedIn } from './caller.js';

/** How long a session lasts, in milliseconds. */
export const sessionLifetimeMs = 12 * 3_600_000;

interface SessionDirectoryDeps {
  /** The user of the environment who may sign in, with the secret there. */
  admin: { readonly user: UserIdentity; readonly secret: string } | undefined;
  /** The other user of the environment, who has the role `admin` if the database says so. */
  first: UserIdentity | undefined;
  sessions: SessionStore;
  /** A clock that is never set, in milliseconds. */
  now?: () => number;
}

/** A session that was opened: what the cookie holds, and when it ends. */
export interface OpenedSession {
  readonly key: string;
  readonly expiresAt: Date;
}

interface Entry {
  readonly caller: Caller;
  /** By the clock of the directory. */
  readonly endsAt: number;
}

/**
 * The sessions of the console, in memory, so that operators can read without the database. `UserDirectory` has them loaded with the
 * users. A session counts only as long as its user has the role `admin`.
 */
export class SessionDirectory {
  readonly #deps: Omit<SessionDirectoryDeps, 'now'>;
  readonly #now: () => number;
  #entries: Map<string, Entry> = new Map();
  /** Whoever has read before a change must not write what is known after it. */
  #changes = 0;

  constructor({ now = () => performance.now(), ...deps }: SessionDirectoryDeps) {
    this.#deps = deps;
    this.#now = now;
  }

  /** Reads the sessions of the database; throws `Failure('database_unavailable')`, and then knows those it knew. */
  async load(): Promise<void> {
    for (;;) {
      const [changes, readAt] = [this.#changes, this.#now()];
      const active = await this.#deps.sessions.listActive();
      if (changes !== this.#changes) continue;
      this.#entries = new Map(active.flatMap((session) => this.#toEntry(session, readAt)));
      this.#changes++;
      return;
    }
  }

  /** The owner of the session with this key; undefined when it is unknown, or has ended. */
  check(key: string): Caller | undefined {
    const entry = this.#digestsOf(key).flatMap((digest) => this.#entries.get(keyOf(digest)) ?? [])[0];
    return entry && this.#now() < entry.endsAt ? entry.caller : undefined;
  }

  /** As `check`, but asks the database for a session that this process has not heard of yet. Throws `database_unavailable`. */
  async find(key: string): Promise<Caller | undefined> {
    const digests = this.#digestsOf(key);
    if (digests.some((digest) => this.#entries.has(keyOf(digest)))) return this.check(key);
    for (;;) {
      const [changes, readAt] = [this.#changes, this.#now()];
      const session = await this.#deps.sessions.find(digests);
      if (changes !== this.#changes) continue;
      const [found] = session ? this.#toEntry(session, readAt) : [];
      if (found === undefined) return undefined;
      this.#changes++;
      this.#entries.set(...found);
      return found[1].caller;
    }
  }

  /** Opens a session, with the hash of the secret that was checked. Throws `Failure('database_unavailable')`. */
  async open({ user, secretHash }: Pick<SignedIn, 'user' | 'secretHash'>): Promise<OpenedSession> {
    const key = randomBytes(32).toString('base64url');
    const { admin, sessions } = this.#deps;
    const [plain, withSecret] = this.#digestsOf(key);
    const digest = user.name === admin?.user.name ? withSecret : plain;
    const endsAt = this.#now() + sessionLifetimeMs;
    const expiresAt = await sessions.create({ digest, user, secretHash, lifetimeMs: sessionLifetimeMs });
    this.#changes++;
    this.#entries.set(keyOf(digest), { caller: toCaller(user, { digest, expiresAt }), endsAt });
    return { key, expiresAt };
  }

  /** Ends the session, or all of its user. Throws `Failure('database_unavailable')`, and then nothing has ended. */
  async close({ name, session }: Caller, { everywhere = false } = {}): Promise<void> {
    const { sessions } = this.#deps;
    if (everywhere) await sessions.endAll(name);
    else if (session) await sessions.end(session.digest);
    this.#changes++;
    for (const [key, { caller }] of this.#entries) {
      const isSame = session !== undefined && caller.session?.digest.equals(session.digest);
      if (isSame || (everywhere && caller.name === name)) this.#entries.delete(key);
    }
  }

  /** Also with the secret of the environment, so that another secret there ends the sessions that it had opened. */
  #digestsOf(key: string): [plain: Buffer, withSecret: Buffer] {
    const { admin } = this.#deps;
    const digest = digestOf(key);
    return [digest, admin ? digestOf(`${key}\n${admin.secret}`) : digest];
  }

  #toEntry(session: ActiveSession, readAt: number): [string, Entry][] {
    const user = this.#ownerOf(session);
    if (user === undefined) return [];
    const endsAt = readAt + session.expiresInMs;
    return [[keyOf(session.digest), { caller: toCaller(user, session), endsAt }]];
  }

  /** Undefined when the user is gone, or has the role `admin` no more; another user of the same name has another id. */
  #ownerOf({ userId, userName, user }: ActiveSession): UserIdentity | undefined {
    const { admin, first } = this.#deps;
    if (userName === admin?.user.name) return admin.user;
    if (user?.role !== 'admin') return undefined;
    if (userName === first?.name) return first;
    const { role: _, ...identity } = user;
    return identity.id === userId ? identity : undefined;
  }
}

const toCaller = (user: UserIdentity, { digest, expiresAt }: CallerSession): Caller => ({
  ...user,
  scopes: ['admin'],
  session: { digest, expiresAt },
});

const keyOf = (digest: Buffer): string => digest.toString('base64');
