import type { Scope, UserRole } from './contract.js';

/**
 * Users, their access tokens and the audit, as operators see them and as the API takes and gives them below `/admin`.
 * Plain interfaces: the OpenAPI document is generated from them. Times are RFC 3339 in UTC.
 */

/** A user. */
export interface UserInfo {
  /** UUID; a name that is used again after a removal gets another one. */
  id: string;
  name: string;
  role: UserRole;
  /** Whether the user may chat or, as `admin`, sign in; a user without a secret has only tokens. */
  hasSecret: boolean;
  /** 1970 where only the environment names the user. */
  createdAt: string;
  /** Absent for a user who is not suspended. */
  suspendedAt?: string;
  /** Present where the environment names the user; `both` where the database has one of that name, too. */
  source?: 'environment' | 'both';
}

/** One page of users, by name; the first begins with those that the environment names, beyond its limit. */
export interface UserPage {
  data: UserInfo[];
  /** Pass it as `after` to get the next page; null on the last one. */
  next: string | null;
}

/** Body of `POST /admin/users`. */
export interface UserInput {
  /** 1 to 128 characters, without a colon or control characters. */
  name: string;
  /** `user` by default. */
  role?: UserRole;
}

/** A new user, or one with a new secret, which is shown this once. */
export interface UserSecret {
  id: string;
  name: string;
  secret: string;
}

/** An access token. */
export interface TokenInfo {
  /** UUIDv7; says nothing about the token itself. */
  id: string;
  /** Name of its user when it was made. */
  owner: string;
  /** For people: what uses it; absent without one. */
  name?: string;
  scopes: Scope[];
  createdAt: string;
  /** Null: never. */
  expiresAt: string | null;
  /** To the minute. */
  lastUsedAt: string | null;
  revokedAt: string | null;
}

/** One page of access tokens, newest first, with those that have expired or were revoked. */
export interface TokenPage {
  data: TokenInfo[];
  /** Pass it as `before` to get the next page; null on the last one. */
  next: string | null;
}

/** Body of `POST /admin/tokens`. */
export interface TokenInput {
  /** Name of its user, who is created without a secret if missing; the scope `admin` needs an existing operator. */
  owner: string;
  /** For people: what uses it, in 1 to 64 characters without control characters. */
  name?: string;
  /** Its scopes. */
  scopes: Scope[];
  /** From now; null: never; 90 by default. */
  expiresInDays?: number | null;
}

/** A new access token, which is shown this once. */
export interface NewToken {
  token: string;
  info: TokenInfo;
}

/** Every action, in the order they are listed to people. */
export const auditActions = [
  'users.add',
  'users.remove',
  'users.reset',
  'users.suspend',
  'users.resume',
  'tokens.create',
  'tokens.revoke',
  'pools.set',
  'chats.cancel',
  'usage.forget',
] as const;

/** The operators' actions that the audit keeps. */
export type AuditAction = (typeof auditActions)[number];

/** Something that an operator has done. */
export interface AuditEntry {
  id: string;
  at: string;
  /** Who it was: a user, or the account of the operating system and its machine. */
  actor: string;
  action: AuditAction;
  /** The id of the user, the token or the chat, or one that is made from the provider's name. */
  targetId: string;
  /** The user's name, that of the owner of the token or the chat, or the provider. */
  targetName: string;
  /** All settings before the change; absent for other actions. */
  before?: unknown;
  /** All settings after the change, the `role` of a new user, or the `scopes` and `expiresAt` of a new token. */
  after?: unknown;
}

/** One page of the audit, newest first. */
export interface AuditPage {
  data: AuditEntry[];
  /** Pass it as `before` to get what is older; null at the end. */
  next: string | null;
}
