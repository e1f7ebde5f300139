import { randomBytes } from 'node:crypto';
import { type UserDigest, type UserIdentity, type UserStore, usersChannel } from '../../db/access/users.js';
import type { Database } from '../../db/database/client.js';
import { digestOf, sameDigest } from '../../shared/access-token.js';
import type { Log } from '../../shared/runtime/log.js';

/** The users, in memory: chat goes on while the database is away. */
export interface UserDirectory {
  /** The user, if the secret is theirs; takes the same time whatever of the two is wrong. */
  check(name: string, secret: string): UserIdentity | undefined;
  /** Whether there is a user of the name, as far as is known. */
  has(name: string): boolean;
  /** Whether the users of the database were loaded at least once; before that nobody can be called unknown. */
  readonly loaded: boolean;
  /** Resolves when the first attempt to load the users is over, well or not. */
  readonly attempted: Promise<void>;
  /** Stops loading. */
  close(): void;
}

interface DirectoryDeps {
  /**
   * The user that the environment names, and the secret if it has one. One of the same name in the database is the same user, with
   * another secret.
   */
  first: { user: UserIdentity; secret: string | undefined } | undefined;
  users: Pick<UserStore, 'digests'>;
  database: Pick<Database, 'listen'>;
  log: Log;
}

/** A net beneath the notifications, which a connection that dies in silence does not bring. */
const reloadEveryMs = 30_000;
/** After a failure; a user who was removed meanwhile must not stay for long. */
const retryMs = 2_000;

/** Starts to load the users, and loads them again whenever they change. */
export function createUserDirectory({ first, users, database, log }: DirectoryDeps): UserDirectory {
  const entriesOf = createEntries(first);
  let entries = entriesOf([]);
  let loaded = false;

  const load = async () => {
    const rows = await users.digests();
    entries = entriesOf(rows);
    if (!loaded) log.info({ users: rows.length }, 'users loaded');
    loaded = true;
  };
  const { request, close } = createRepeater({ load, log });
  database.listen(usersChannel, { onListen: request, onNotify: request });

  return {
    check: (name, secret) => {
      const entry = entries.get(name);
      const given = digestOf(secret);
      const compared = (entry?.digests ?? [nobody, nobody]).map((digest) => sameDigest(given, digest));
      return compared.includes(true) ? entry?.user : undefined;
    },
    has: (name) => entries.has(name),
    get loaded() {
      return loaded;
    },
    attempted: request(),
    close,
  };
}

interface Entry {
  readonly user: UserIdentity;
  /** Of the secret in the database and of that in the environment. */
  readonly digests: readonly [Buffer, Buffer];
}

/** Compared with where there is no secret: nothing has this digest. */
const nobody = randomBytes(32);

/** Gives the users by name, from what is in the database. */
function createEntries(first: DirectoryDeps['first']) {
  const firstDigest = first?.secret ? digestOf(first.secret) : nobody;
  const toEntry = ({ secretHash, ...user }: UserDigest): [string, Entry] => {
    const digest = secretHash.length > 0 ? secretHash : nobody;
    const entry: Entry =
      user.name === first?.user.name
        ? { user: first.user, digests: [digest, firstDigest] }
        : { user, digests: [digest, nobody] };
    return [user.name, entry];
  };
  return (rows: readonly UserDigest[]): ReadonlyMap<string, Entry> =>
    new Map([...(first ? [toEntry({ ...first.user, secretHash: nobody })] : []), ...rows.map(toEntry)]);
}

interface Repeater {
  /** Loads once more, from now on: what is under way may have read too early. Resolves when that is over. */
  request(): Promise<void>;
  close(): void;
}

/** Loads one at a time on request, and by itself after a while: sooner when the last attempt has failed. */
function createRepeater({ load, log }: { load: () => Promise<void>; log: Log }): Repeater {
  let requested = false;
  let closed = false;
  let failing = false;
  let running: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;

  const attempt = async () => {
    requested = false;
    try {
      await load();
      failing = false;
    } catch (err) {
      if (!failing && !closed) log.warn({ err }, 'could not load the users');
      failing = true;
    }
  };
  const run = async () => {
    clearTimeout(timer);
    while (requested && !closed) await attempt();
    running = undefined;
    if (!closed) timer = setTimeout(request, failing ? retryMs : reloadEveryMs).unref();
  };
  const request = () => {
    requested = true;
    running ??= run();
    return running;
  };
  return {
    request,
    close: () => {
      closed = true;
      clearTimeout(timer);
    },
  };
}
