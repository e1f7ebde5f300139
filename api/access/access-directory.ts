import { randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { ActiveSession, SessionStore } from '../../db/access/sessions.js';
import type { ActiveToken, TokenStore } from '../../db/access/tokens.js';
import { type UserIdentity, type UserStore, usersChannel } from '../../db/access/users.js';
import type { Database } from '../../db/database/client.js';
import { digestOf, isAccessToken } from '../../shared/credential-forms.js';
import type { Log } from '../../shared/runtime/log.js';
import type { Caller, CallerSession, SignedIn } from './caller.js';
import {
  asEnvironmentUser,
  type EnvironmentUsers,
  environmentGrants,
  type Grant,
  KnownGrants,
  KnownUsers,
  sessionKey,
  tokenKey,
} from './known-users.js';
import { ReloadLoop } from './reload-loop.js';

interface AccessDirectoryDeps {
  environment: EnvironmentUsers;
  users: Pick<UserStore, 'digests' | 'removedWithin'>;
  tokens: Pick<TokenStore, 'listActive' | 'find' | 'markUsed'>;
  sessions: SessionStore;
  log: Log;
  /** A clock that is never set, in milliseconds. */
  now?: () => number;
  /** How often all is loaded although no change was heard of, in milliseconds. */
  reloadEveryMs?: number;
}

/** How long a session lasts, in milliseconds. */
export const sessionLifetimeMs = 12 * 3_600_000;

/** No chat takes longer: the longest wait, or stream, and the time before it are an hour each at most. */
const removedForMs = 2 * 3_600_000;
const recordUseEveryMs = 60_000;
/** Tokens whose use was recorded within the minute. Forgetting one only means that its use is recorded again. */
const maxRecorded = 10_000;

/**
 * Users, access tokens and sessions of the console, in memory, so that chats and reads need no database. They are
 * loaded together, and again whenever they change. A load that fails changes nothing.
 */
export class AccessDirectory {
  readonly #deps: AccessDirectoryDeps;
  readonly #now: () => number;
  readonly #environmentGrants: ReadonlyMap<string, Grant>;
  readonly #grants: KnownGrants;
  readonly #recorded: LRUCache<string, true>;
  readonly #loop: ReloadLoop;
  #users: KnownUsers;
  #removedIds: readonly string[] = [];
  #loaded = false;
  #failing = false;

  constructor(deps: AccessDirectoryDeps) {
    const { environment, now = () => performance.now(), reloadEveryMs: everyMs } = deps;
    this.#deps = deps;
    this.#loop = new ReloadLoop(() => this.#load(), everyMs === undefined ? {} : { everyMs });
    this.#now = now;
    this.#users = new KnownUsers(environment, []);
    this.#environmentGrants = environmentGrants(environment);
    this.#grants = new KnownGrants(now, this.#environmentGrants);
    this.#recorded = new LRUCache({
      max: maxRecorded,
      ttl: recordUseEveryMs,
      ttlResolution: 0,
      perf: { now },
    });
  }

  /** Begins to load and to listen for changes. Resolves when the first attempt has succeeded or failed. */
  start(database: Pick<Database, 'listen'>): Promise<void> {
    const reload = () => void this.reload();
    database.listen(usersChannel, { onListen: reload, onNotify: reload });
    return this.reload();
  }

  close(): void {
    this.#loop.close();
  }

  /** Resolves when all is known here as the database has it by now, or loading has failed; never rejects. */
  reload(): Promise<void> {
    return this.#loop.reload();
  }

  /** Reloads at most once a second; all calls until then share one load. */
  reloadShared(): Promise<void> {
    return this.#loop.reloadShared();
  }

  onLoad(listener: () => void): () => void {
    return this.#loop.onLoad(listener);
  }

  /** Whether the database was read at least once; before that, an unknown user may exist. */
  get loaded(): boolean {
    return this.#loaded;
  }

  /** Ids of the users who were removed within the time that a chat may take, as far as was loaded. */
  get removedIds(): readonly string[] {
    return this.#removedIds;
  }

  isSuspended(name: string): boolean {
    return this.#users.suspended.has(name);
  }

  hasUser(name: string): boolean {
    return this.#users.has(name);
  }

  /** The user with this name, if the secret is right. Takes the same time whether the name or the secret is wrong. */
  checkUser(name: string, secret: string): SignedIn | undefined {
    return this.#users.check(name, secret);
  }

  /** The caller that the token belongs to; undefined when it is unknown, revoked or expired. */
  checkToken(token: string): Caller | undefined {
    return this.#recordUse(this.#grants.check(this.#tokenKeys(token)));
  }

  /** Checks a token, an unknown one in the database. Throws `Failure('database_unavailable')`. */
  async findToken(token: string): Promise<Caller | undefined> {
    const read = async () => {
      const readAt = this.#now();
      const found = await this.#deps.tokens.find(digestOf(token));
      return found && this.#toTokenGrant(found, readAt);
    };
    return this.#recordUse(await this.#grants.find(this.#tokenKeys(token), read));
  }

  /** The owner of the session with this key; undefined when it is unknown, or has ended. */
  checkSession(key: string): Caller | undefined {
    return this.#grants.check(this.#sessionDigests(key).map(sessionKey));
  }

  /** Checks a session, an unknown one in the database. Throws `Failure('database_unavailable')`. */
  findSession(key: string): Promise<Caller | undefined> {
    const digests = this.#sessionDigests(key);
    return this.#grants.find(digests.map(sessionKey), async () => {
      const readAt = this.#now();
      const found = await this.#deps.sessions.find(digests);
      return found && this.#toSessionGrants(found, readAt)[0];
    });
  }

  /** Opens a session with the hash of the checked secret; `key` is for the cookie. Throws `database_unavailable`. */
  async openSession({ user, secretHash }: Pick<SignedIn, 'user' | 'secretHash'>) {
    const key = randomBytes(32).toString('base64url');
    const { environment, sessions } = this.#deps;
    const [plain, withSecret] = this.#sessionDigests(key);
    const digest = user.name === environment.admin?.user.name ? withSecret : plain;
    const endsAt = this.#now() + sessionLifetimeMs;
    const expiresAt = await sessions.create({ digest, user, secretHash, lifetimeMs: sessionLifetimeMs });
    this.#grants.set(sessionKey(digest), { caller: sessionCaller(user, { digest, expiresAt }), endsAt });
    return { key, expiresAt };
  }

  /** Ends the session, or all of its user. Throws `Failure('database_unavailable')`, and then nothing has ended. */
  async closeSession({ name, session }: Caller, { everywhere = false } = {}): Promise<void> {
    const { sessions } = this.#deps;
    if (everywhere) await sessions.endAll(name);
    else if (session) await sessions.end(session.digest);
    this.#grants.delete((caller) => {
      if (caller.session === undefined) return false;
      const isSame = session !== undefined && caller.session.digest.equals(session.digest);
      return isSame || (everywhere && caller.name === name);
    });
  }

  async #load(): Promise<boolean> {
    try {
      // Sessions may be opened and ended here meanwhile.
      for (let isDone = false; !isDone; ) isDone = await this.#loadOnce();
      this.#failing = false;
    } catch (err) {
      if (!this.#failing && !this.#loop.closed) this.#deps.log.warn({ err }, 'could not load the users');
      this.#failing = true;
    }
    return !this.#failing;
  }

  /** False when something changed here while it read. */
  async #loadOnce(): Promise<boolean> {
    const { environment, users, tokens, sessions, log } = this.#deps;
    const [changes, readAt] = [this.#grants.changes, this.#now()];
    const digests = await users.digests();
    const activeTokens = await tokens.listActive();
    const removedIds = await users.removedWithin(removedForMs);
    const activeSessions = await sessions.listActive();
    if (changes !== this.#grants.changes) return false;
    this.#users = new KnownUsers(environment, digests);
    this.#removedIds = removedIds;
    this.#grants.replace([
      ...activeTokens.map((token) => this.#toTokenGrant(token, readAt)),
      ...activeSessions.flatMap((session) => this.#toSessionGrants(session, readAt)),
      ...this.#environmentGrants,
    ]);
    if (!this.#loaded) log.info({ users: digests.length }, 'users loaded');
    this.#loaded = true;
    return true;
  }

  /** Records a use in the background: the caller neither waits for it nor fails with it. */
  #recordUse(caller: Caller | undefined): Caller | undefined {
    const id = caller?.tokenId;
    if (id === undefined || this.#recorded.has(id)) return caller;
    this.#recorded.set(id, true);
    const { tokens, log } = this.#deps;
    tokens.markUsed(id).catch((err) => log.warn({ err, token: id }, 'could not record the use of a token'));
    return caller;
  }

  /** The keys of a token's grants; none for a text that is no token of this server. */
  #tokenKeys(token: string): string[] {
    const key = tokenKey(digestOf(token));
    return isAccessToken(token) || this.#environmentGrants.has(key) ? [key] : [];
  }

  #toTokenGrant({ id, secretHash, user, scopes, expiresInMs }: ActiveToken, readAt: number): [string, Grant] {
    const caller = { ...asEnvironmentUser(user, this.#deps.environment), scopes, tokenId: id };
    return [tokenKey(secretHash), { caller, endsAt: readAt + (expiresInMs ?? Number.POSITIVE_INFINITY) }];
  }

  /** Also with the secret of the environment, so that another secret there ends the sessions that it had opened. */
  #sessionDigests(key: string): [plain: Buffer, withSecret: Buffer] {
    const secret = this.#deps.environment.admin?.secret;
    const digest = digestOf(key);
    return [digest, secret ? digestOf(`${key}\n${secret}`) : digest];
  }

  #toSessionGrants(session: ActiveSession, readAt: number): [string, Grant][] {
    const user = this.#sessionOwner(session);
    if (user === undefined) return [];
    const endsAt = readAt + session.expiresInMs;
    return [[sessionKey(session.digest), { caller: sessionCaller(user, session), endsAt }]];
  }

  /** Undefined unless the user is still an operator; another user of the same name has another id. */
  #sessionOwner({ userId, userName, user }: ActiveSession): UserIdentity | undefined {
    const { admin, first } = this.#deps.environment;
    if (userName === admin?.user.name) return admin.user;
    if (user?.role !== 'admin') return undefined;
    if (userName === first?.user.name) return first.user;
    const { role: _, ...identity } = user;
    return identity.id === userId ? identity : undefined;
  }
}

const sessionCaller = (user: UserIdentity, { digest, expiresAt }: CallerSession): Caller => ({
  ...user,
  scopes: ['admin'],
  session: { digest, expiresAt },
});
