import { randomBytes } from 'node:crypto';
import { type UserDigest, type UserIdentity, type UserStore, usersChannel } from '../../db/access/users.js';
import type { Database } from '../../db/database/client.js';
import { digestOf, sameDigest } from '../../shared/access-token.js';
import type { UserRole } from '../../shared/contract.js';
import type { Log } from '../../shared/runtime/log.js';
import type { SignedIn } from './caller.js';
import type { SessionDirectory } from './session-directory.js';
import type { TokenDirectory } from './token-directory.js';

interface DirectoryDeps {
  /** The user and the secret of the environment. A user of the same name in the database is the same user, with a second secret. */
  first: { user: UserIdentity; secret: string | undefined } | undefined;
  /** The user of the environment with the role `admin`, and another name; as `first` otherwise. */
  admin?: { user: UserIdentity; secret: string } | undefined;
  users: Pick<UserStore, 'digests' | 'removedWithin'>;
  /** Loaded whenever the users are. */
  tokens: Pick<TokenDirectory, 'load'>;
  sessions: Pick<SessionDirectory, 'load'>;
  database: Pick<Database, 'listen'>;
  log: Log;
}

/** In case a notification is lost: a connection can die unnoticed. */
const reloadEveryMs = 30_000;
/** No chat takes longer: the longest wait, or stream, and the time before it are an hour each at most. */
const removedForMs = 2 * 3_600_000;
/** After a failure; sooner, because a user who was removed meanwhile must not stay for long. */
const retryMs = 2_000;

/**
 * The users, in memory, so that chat works without the database. Loads them, their tokens and sessions, when it is created and again
 * whenever they change, one load at a time.
 */
export class UserDirectory {
  readonly #deps: DirectoryDeps;
  readonly #firstDigest: Buffer;
  readonly #adminDigest: Buffer;
  #entries: ReadonlyMap<string, Entry>;
  #removedIds: readonly string[] = [];
  readonly #listeners = new Set<() => void>();
  #loaded = false;
  #requested = false;
  #failing = false;
  #closed = false;
  #loading: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** Resolves when the first attempt to load the users has succeeded or failed. */
  readonly attempted: Promise<void>;

  constructor(deps: DirectoryDeps) {
    this.#deps = deps;
    this.#firstDigest = deps.first?.secret ? digestOf(deps.first.secret) : nobody;
    this.#adminDigest = deps.admin ? digestOf(deps.admin.secret) : nobody;
    this.#entries = this.#entriesOf([]);
    const reload = () => void this.reload();
    deps.database.listen(usersChannel, { onListen: reload, onNotify: reload });
    this.attempted = this.reload();
  }

  /** The user, if the secret is theirs; takes the same time whichever of the two is wrong. */
  check(name: string, secret: string): UserIdentity | undefined {
    return this.checkOperator(name, secret)?.user;
  }

  /** As `check`, with whether the secret is one of a user with the role `admin`: CHAT_PASSWORD never is. */
  checkOperator(name: string, secret: string): SignedIn | undefined {
    const entry = this.#entries.get(name);
    const given = digestOf(secret);
    const { stored, first, admin } = entry?.digests ?? noDigests;
    const isStored = sameDigest(given, stored);
    const isFirst = sameDigest(given, first);
    const isAdmin = sameDigest(given, admin);
    if (entry === undefined || !(isStored || isFirst || isAdmin)) return undefined;
    const isOperator = isAdmin || (isStored && entry.role === 'admin');
    return { user: entry.user, isOperator, secretHash: isStored ? given : undefined };
  }

  has(name: string): boolean {
    return this.#entries.has(name);
  }

  /** Whether the users of the database were loaded at least once; before that, an unknown user may exist. */
  get loaded(): boolean {
    return this.#loaded;
  }

  /** Ids of the users who were removed within the time that a chat may take, as far as was loaded. */
  get removedIds(): readonly string[] {
    return this.#removedIds;
  }

  /** Calls the listener after each load, until what is returned is called. */
  onLoad(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Loads once more from now on: a load that is under way may have read too early. Resolves after that, also if it failed; never rejects. */
  reload(): Promise<void> {
    this.#requested = true;
    this.#loading ??= this.#loadRequested();
    return this.#loading;
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  async #loadRequested(): Promise<void> {
    clearTimeout(this.#timer);
    while (this.#requested && !this.#closed) {
      await this.#load();
      // Also after a failure: a part may have been loaded.
      for (const listener of this.#listeners) listener();
    }
    this.#loading = undefined;
    const pauseMs = this.#failing ? retryMs : reloadEveryMs;
    if (!this.#closed) this.#timer = setTimeout(() => void this.reload(), pauseMs).unref();
  }

  async #load(): Promise<void> {
    const { users, tokens, sessions, log } = this.#deps;
    this.#requested = false;
    try {
      const rows = await users.digests();
      // Not beside it: after a failure there it would go on, and might end after the next load, with what was read before.
      await tokens.load();
      this.#entries = this.#entriesOf(rows);
      if (!this.#loaded) log.info({ users: rows.length }, 'users loaded');
      this.#loaded = true;
      this.#removedIds = await users.removedWithin(removedForMs);
      // Behind what chat needs: where their table is not there yet, the console has to wait, and nobody else.
      await sessions.load();
      this.#failing = false;
    } catch (err) {
      if (!this.#failing && !this.#closed) log.warn({ err }, 'could not load the users');
      this.#failing = true;
    }
  }

  #entriesOf(rows: readonly UserDigest[]): ReadonlyMap<string, Entry> {
    const { first, admin } = this.#deps;
    const toEntry = ({ secretHash, role, ...user }: UserDigest): [string, Entry] => {
      const isFirst = user.name === first?.user.name;
      const isAdmin = user.name === admin?.user.name;
      const digests = {
        stored: secretHash.length > 0 ? secretHash : nobody,
        first: isFirst ? this.#firstDigest : nobody,
        admin: isAdmin ? this.#adminDigest : nobody,
      };
      const configured = (isAdmin && admin?.user) || (isFirst && first?.user);
      return [user.name, { user: configured || user, role, digests }];
    };
    const configured = [first, admin].flatMap((given): UserDigest[] =>
      given ? [{ ...given.user, secretHash: nobody, role: 'user' }] : [],
    );
    return new Map([...configured, ...rows].map(toEntry));
  }
}

interface Entry {
  readonly user: UserIdentity;
  /** In the database. */
  readonly role: UserRole;
  readonly digests: Digests;
}

/** Of the secret in the database, and of those in the environment. */
interface Digests {
  readonly stored: Buffer;
  readonly first: Buffer;
  readonly admin: Buffer;
}

/** Stands for a missing secret: no secret has this digest. */
const nobody = randomBytes(32);
const noDigests: Digests = { stored: nobody, first: nobody, admin: nobody };
