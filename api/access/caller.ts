import type { Request } from 'express';
import type { UserIdentity } from '../../db/access/users.js';
import type { Scope } from '../../shared/contract.js';
import type { Log } from '../../shared/runtime/log.js';
import type { LoginLimiter } from './login-limiter.js';

/** The authenticated user of a request: the same by Basic, by each access token, and by a session of the console. */
export interface Caller extends UserIdentity {
  readonly scopes: readonly Scope[];
  /** Of the token in the database that the request came with; a write checks that it is still active. */
  readonly tokenId?: string;
  readonly session?: CallerSession;
}

/** A session of the console. */
export interface CallerSession {
  readonly digest: Buffer;
  readonly expiresAt: Date;
}

/** A request of an operation that requires credentials, after they have been checked. */
export type AuthenticatedRequest = Request & { readonly user: Caller };

/** A request of an operation that may be public; `user` is undefined for an anonymous reader. */
export type ReaderRequest = Request & { readonly user?: Caller };

/** Whether the caller may write posts, and therefore see drafts. */
export const mayWrite = ({ user }: ReaderRequest): boolean => user?.scopes.includes('blogs:write') ?? false;

/** Who has signed in with a name and a secret. */
export interface SignedIn {
  readonly user: UserIdentity;
  /** Whether with the secret of a user with the role `admin`. */
  readonly isOperator: boolean;
  /** SHA-256 of the secret, if it is that of the database. */
  readonly secretHash: Buffer | undefined;
}

/** Checks credentials for the generated routes, which find it in `app.locals.authentication`. */
export interface Authentication {
  /** Takes the same time if either of the two is wrong. */
  checkUser(name: string, secret: string): UserIdentity | undefined;
  checkOperator(name: string, secret: string): SignedIn | undefined;
  /** Whether a user has this name, so that it is safe to log. */
  userExists(name: string): boolean;
  /** Whether `checkUser` knows all users; until then a failed check proves nothing. */
  usersLoaded(): boolean;
  /** The owner of the token; asks the database for one that is not known yet. */
  checkToken(token: string): Promise<Caller | undefined>;
  /** As `checkToken`, but without the database. */
  checkLoadedToken(token: string): Caller | undefined;
  /** The owner of the session with this key; asks the database for one that is not known yet. */
  checkSession(key: string): Promise<Caller | undefined>;
  /** As `checkSession`, but without the database. */
  checkLoadedSession(key: string): Caller | undefined;
  /** Calls the listener whenever users, tokens or sessions may have changed; returns a function that ends that. */
  onLoad(listener: () => void): () => void;
  loginLimiter: LoginLimiter;
  /** For Basic until the users are loaded: credentials that fail by then may be right, and must not count later. */
  earlyLimiter: LoginLimiter;
  log: Log;
  /** Whether posts may be read without credentials. */
  publicReads: boolean;
}
