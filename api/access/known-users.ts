import { randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { UserDigest, UserIdentity } from '../../db/access/users.js';
import type { Scope, UserRole } from '../../shared/contracts/contract.js';
import { digestOf, sameDigest } from '../../shared/credential-forms.js';
import { Failure } from '../../shared/failures.js';
import type { Caller, SignedIn } from './caller.js';

/** A user that the environment names. A user of the database with that name is the same user, with a second secret. */
export interface EnvironmentUser {
  readonly user: UserIdentity;
  readonly secret?: string | undefined;
  /** The user's tokens in the environment, which may have any form. */
  readonly tokens?: readonly { readonly token: string; readonly scopes: readonly Scope[] }[];
}

/** The users that the environment names; they have different names. */
export interface EnvironmentUsers {
  /** The chat user, whose secret opens no console. */
  readonly first?: EnvironmentUser | undefined;
  readonly admin?: EnvironmentUser | undefined;
}

/** The user of the environment with this name, or the user that is given. */
export const asEnvironmentUser = (user: UserIdentity, { first, admin }: EnvironmentUsers): UserIdentity =>
  [admin, first].find((known) => known?.user.name === user.name)?.user ?? user;

/** The users by their names, as one load found them. */
export class KnownUsers {
  readonly #entries: ReadonlyMap<string, Entry>;
  /** The names of users who may do nothing: all of a name's secrets, tokens and sessions belong to one user. */
  readonly suspended: ReadonlySet<string>;

  constructor(environment: EnvironmentUsers, rows: readonly UserDigest[]) {
    const { first, admin } = environment;
    const toEntry = ({ secretHash, role, suspendedAt: _, ...user }: UserDigest): [string, Entry] => [
      user.name,
      {
        user: asEnvironmentUser(user, environment),
        role,
        stored: secretHash.length > 0 ? secretHash : noSecret,
        first: user.name === first?.user.name && first.secret ? digestOf(first.secret) : noSecret,
        admin: user.name === admin?.user.name && admin.secret ? digestOf(admin.secret) : noSecret,
      },
    ];
    const named = [first, admin].flatMap((given): UserDigest[] =>
      given ? [{ ...given.user, secretHash: noSecret, role: 'user' }] : [],
    );
    this.#entries = new Map([...named, ...rows].map(toEntry));
    this.suspended = new Set(rows.flatMap(({ name, suspendedAt }) => (suspendedAt ? [name] : [])));
  }

  /** The user, if the secret matches. Takes the same time whether the name or the secret is wrong. */
  check(name: string, secret: string): SignedIn | undefined {
    const { user, role, ...digests } = this.#entries.get(name) ?? unknownUser;
    const given = digestOf(secret);
    const isStored = sameDigest(given, digests.stored);
    const isFirst = sameDigest(given, digests.first);
    const isAdmin = sameDigest(given, digests.admin);
    if (user === undefined || !(isStored || isFirst || isAdmin)) return undefined;
    const isOperator = isAdmin || (isStored && role === 'admin');
    return { user, isOperator, secretHash: isStored ? given : undefined };
  }

  has(name: string): boolean {
    return this.#entries.has(name);
  }
}

interface Entry {
  readonly user: UserIdentity | undefined;
  /** The role that the database has for the user. */
  readonly role: UserRole;
  /** Digest of the secret in the database. */
  readonly stored: Buffer;
  /** Digests of the secrets in the environment. */
  readonly first: Buffer;
  readonly admin: Buffer;
}

/** Stands for a missing secret: no secret has this digest. */
const noSecret = randomBytes(32);
const unknownUser: Entry = {
  user: undefined,
  role: 'user',
  stored: noSecret,
  first: noSecret,
  admin: noSecret,
};

/** The caller whose token or session it is, and until when. */
export interface Grant {
  readonly caller: Caller;
  /** By the clock of `KnownGrants`. */
  readonly endsAt: number;
}

/** The key of the token with this digest. */
export const tokenKey = (digest: Buffer): string => `token ${digest.toString('base64')}`;
/** The key of the session with this digest. */
export const sessionKey = (digest: Buffer): string => `session ${digest.toString('base64')}`;

/** The grants of the environment's tokens; one token may have the scopes of several. */
export function environmentGrants({ first }: EnvironmentUsers): ReadonlyMap<string, Grant> {
  const grants = new Map<string, Grant>();
  if (first === undefined) return grants;
  for (const { token, scopes } of first.tokens ?? []) {
    const key = tokenKey(digestOf(token));
    const all = [...(grants.get(key)?.caller.scopes ?? []), ...scopes];
    grants.set(key, { caller: { ...first.user, scopes: all }, endsAt: Number.POSITIVE_INFINITY });
  }
  return grants;
}

type ReadGrant = () => Promise<readonly [string, Grant] | undefined>;

/** Unknown keys that are remembered, 150 bytes each. Forgetting one only means that it is looked up again. */
const maxUnknown = 10_000;
/** If changes keep overtaking the reading, the last one begins within this time: a request has four seconds. */
const readForMs = 1000;

/**
 * Tokens and sessions by keys made from their digests, so that the duration of a search reveals nothing about them. An
 * unknown key is looked up once, however many requests have it, and once more after each load.
 */
export class KnownGrants {
  readonly #now: () => number;
  #grants: Map<string, Grant>;
  readonly #unknown = new LRUCache<string, true>({ max: maxUnknown });
  readonly #lookups = new Map<string, Promise<Caller | undefined>>();
  #changes = 0;

  /** `now` is a clock that is never set, in milliseconds. */
  constructor(now: () => number, grants: Iterable<[string, Grant]>) {
    this.#now = now;
    this.#grants = new Map(grants);
  }

  /** How often they have changed: what was read before a change must not replace what is known after it. */
  get changes(): number {
    return this.#changes;
  }

  /** The caller of the first of the keys that is known; undefined when it has ended. */
  check(keys: readonly string[]): Caller | undefined {
    const [grant] = keys.flatMap((key) => this.#grants.get(key) ?? []);
    return grant && this.#now() < grant.endsAt ? grant.caller : undefined;
  }

  /**
   * Checks the keys, and reads the grant when none is known. Rejects as `read` does, and then remembers nothing; also
   * with `database_unavailable`, where changes overtake each reading for a second.
   */
  async find(keys: readonly string[], read: ReadGrant): Promise<Caller | undefined> {
    const [key] = keys;
    if (key === undefined || this.#unknown.has(key) || keys.some((each) => this.#grants.has(each)))
      return this.check(keys);
    const lookup =
      this.#lookups.get(key) ?? this.#lookUp(keys, read).finally(() => this.#lookups.delete(key));
    this.#lookups.set(key, lookup);
    return lookup;
  }

  set(key: string, grant: Grant): void {
    this.#changes++;
    this.#grants.set(key, grant);
  }

  delete(isEnded: (caller: Caller) => boolean): void {
    this.#changes++;
    for (const [key, { caller }] of this.#grants) if (isEnded(caller)) this.#grants.delete(key);
  }

  replace(grants: Iterable<[string, Grant]>): void {
    this.#changes++;
    this.#grants = new Map(grants);
    this.#unknown.clear();
  }

  async #lookUp(keys: readonly string[], read: ReadGrant): Promise<Caller | undefined> {
    const readUntil = this.#now() + readForMs;
    do {
      const changes = this.#changes;
      const found = await read();
      if (changes !== this.#changes) continue;
      const [key] = keys;
      if (found) this.set(...found);
      else if (key !== undefined) this.#unknown.set(key, true);
      return this.check(keys);
    } while (this.#now() < readUntil);
    throw new Failure('database_unavailable');
  }
}
