import { randomBytes } from 'node:crypto';
import { type UserDigest, type UserIdentity, type UserStore, usersChannel } from '../../db/access/users.js';
import type { Database } from '../../db/database/client.js';
import { digestOf, sameDigest } from '../../shared/access-token.js';
import type { Log } from '../../shared/runtime/log.js';
import type { TokenDirectory } from './token-directory.js';

interface DirectoryDeps {
  /** The user and the secret of the environment. A user of the same name in the database is the same user, with a second secret. */
  first: { user: UserIdentity; secret: string | undefined } | undefined;
  users: Pick<UserStore, 'digests'>;
  /** Loaded whenever the users are. */
  tokens: Pick<TokenDirectory, 'load'>;
  database: Pick<Database, 'listen'>;
  log: Log;
}

/** In case a notification is lost: a connection can die unnoticed. */
const reloadEveryMs = 30_000;
/** After a failure; sooner, because a user who was removed meanwhile must not stay for long. */
const retryMs = 2_000;

/**
 * The users, in memory, so that chat works without the database. Loads them, and their tokens, when it is created and again
 * whenever they change, one load at a time.
 */
export class UserDirectory {
  readonly #deps: DirectoryDeps;
  readonly #firstDigest: Buffer;
  #entries: ReadonlyMap<string, Entry>;
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
    this.#entries = this.#entriesOf([]);
    const reload = () => void this.#request();
    deps.database.listen(usersChannel, { onListen: reload, onNotify: reload });
    this.attempted = this.#request();
  }

  /** The user, if the secret is theirs; takes the same time whichever of the two is wrong. */
  check(name: string, secret: string): UserIdentity | undefined {
    const entry = this.#entries.get(name);
    const given = digestOf(secret);
    const compared = (entry?.digests ?? [nobody, nobody]).map((digest) => sameDigest(given, digest));
    return compared.includes(true) ? entry?.user : undefined;
  }

  /** Whether a user of this name is known. */
  has(name: string): boolean {
    return this.#entries.has(name);
  }

  /** Whether the users of the database were loaded at least once; before that, an unknown user may exist. */
  get loaded(): boolean {
    return this.#loaded;
  }

  /** Stops loading. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  /** Loads once more from now on: a load that is under way may have read too early. Resolves after that. */
  #request(): Promise<void> {
    this.#requested = true;
    this.#loading ??= this.#loadRequested();
    return this.#loading;
  }

  async #loadRequested(): Promise<void> {
    clearTimeout(this.#timer);
    while (this.#requested && !this.#closed) await this.#load();
    this.#loading = undefined;
    const pauseMs = this.#failing ? retryMs : reloadEveryMs;
    if (!this.#closed) this.#timer = setTimeout(() => void this.#request(), pauseMs).unref();
  }

  async #load(): Promise<void> {
    const { users, tokens, log } = this.#deps;
    this.#requested = false;
    try {
      const rows = await users.digests();
      // Not beside it: after a failure there it would go on, and might end after the next load, with what was read before.
      await tokens.load();
      this.#entries = this.#entriesOf(rows);
      if (!this.#loaded) log.info({ users: rows.length }, 'users loaded');
      this.#loaded = true;
      this.#failing = false;
    } catch (err) {
      if (!this.#failing && !this.#closed) log.warn({ err }, 'could not load the users');
      this.#failing = true;
    }
  }

  #entriesOf(rows: readonly UserDigest[]): ReadonlyMap<string, Entry> {
    const { first } = this.#deps;
    const toEntry = ({ secretHash, ...user }: UserDigest): [string, Entry] => {
      const digest = secretHash.length > 0 ? secretHash : nobody;
      const isFirst = user.name === first?.user.name;
      const entry: Entry = isFirst
        ? { user: first.user, digests: [digest, this.#firstDigest] }
        : { user, digests: [digest, nobody] };
      return [user.name, entry];
    };
    const configured = first ? [toEntry({ ...first.user, secretHash: nobody })] : [];
    return new Map([...configured, ...rows.map(toEntry)]);
  }
}

interface Entry {
  readonly user: UserIdentity;
  /** Of the secret in the database and of that in the environment. */
  readonly digests: readonly [Buffer, Buffer];
}

/** Stands for a missing secret: no secret has this digest. */
const nobody = randomBytes(32);
