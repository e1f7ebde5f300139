import type { Request } from 'express';
import type { UserIdentity } from '../../db/access/users.js';
import type { Scope } from '../../shared/contracts/contract.js';

/** The authenticated user of a request: the same by Basic, by each access token, and by a session of the console. */
export interface Caller extends UserIdentity {
  readonly scopes: readonly Scope[];
  /** Id of the database's token that the request came with; a write checks that it is still active. */
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
