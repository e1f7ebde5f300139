import { randomBytes } from 'node:crypto';
import type { Database } from '../db/client.js';
import { type UserStore, usersChannel } from '../db/users.js';
import { digestOf, sameDigest } from '../shared/access-token.js';
import type { Log } from '../shared/log.js';

/** A chat user whose credentials were right. */
export interface User {
  readonly name: string;
}

/** The chat users, in memory: chat goes on while the database is away. */
export interface UserDirectory {
  /** The user, if the secret is theirs; takes the same time whatever of the two is wrong. */
  check(name: string, secret: string): User | undefined;
  /** Whether the users of the database were loaded at least once; before that nobody can be called unknown. */
  readonly loaded: boolean;
  /** Resolves when the first attempt to load the users is over, well or not. */
  readonly attempted: Promise<void>;
  /** Stops loading. */
  close(): void;
}

interface DirectoryDeps {
  /** The user that the environment names; it stands before one of the same name in the database. */
  first: { name: string; secret: string } | undefined;
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
  const firstEntries = first ? [[first.name, digestOf(first.secret)] as const] : [];
  /** Compared with when there is no such user. */
  const nobody = randomBytes(32);
  let digests: ReadonlyMap<string, Buffer> = new Map(firstEntries);
  let loaded = false;

  const load = async () => {
    const rows = await users.digests();
    digests = new Map([...rows.map(({ name, secretHash }) => [name, secretHash] as const), ...firstEntries]);
    if (!loaded) log.info({ users: rows.length }, 'users loaded');
    loaded = true;
  };
  const { request, close } = createRepeater({ load, log });
  database.listen(usersChannel, { onListen: request, onNotify: request });

  return {
    check: (name, secret) => {
      const expected = digests.get(name) ?? nobody;
      return sameDigest(digestOf(secret), expected) && expected !== nobody ? { name } : undefined;
    },
    get loaded() {
      return loaded;
    },
    attempted: request(),
    close,
  };
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
