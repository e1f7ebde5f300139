import { randomBytes } from 'node:crypto';
import type { UserDigest, UserIdentity } from '../../db/access/users.js';
import type { Scope, UserRole } from '../../shared/contracts/contract.js';
import { digestOf, sameDigest } from '../../shared/credential-forms.js';
import type { SignedIn } from './caller.js';

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
