import type { RequestHandler } from 'express';
import { z } from 'zod';
import { type AuditAction, auditActions } from '../../shared/contracts/accounts.js';
import { scopes, userRoles } from '../../shared/contracts/contract.js';
import { tokenName, userName } from '../../shared/credential-forms.js';
import { Failure } from '../../shared/failures.js';
import { isUuid, type PageQuery, pageLimit } from '../http/query.js';

export const userInput = z.strictObject({ name: userName, role: z.enum(userRoles).optional() });

/** Ten years: a token that lives longer is forgotten. */
const maxDays = 3650;
const days = { error: `must be a whole number of days from 1 to ${maxDays}, or null` };

export const tokenInput = z.strictObject({
  owner: userName,
  name: tokenName.optional(),
  scopes: z
    .array(z.enum(scopes))
    .min(1, { error: 'must name at least one scope' })
    .max(scopes.length, { error: `must have at most ${scopes.length} items` }),
  expiresInDays: z.int(days).min(1, days).max(maxDays, days).nullish(),
});

const entryId = z.string().refine(isUuid, 'must be the id of an entry of this list').meta({ format: 'uuid' });

/** Query of `GET /admin/users`. */
export interface UserQuery extends PageQuery {
  /** Where to continue: `next` of the previous page. */
  after?: string;
}

export const userQuery = z.object({ limit: pageLimit, after: userName }).partial();

/** Query of `GET /admin/tokens`. */
export interface TokenQuery extends PageQuery {
  /** Where to continue: `next` of the previous page. */
  before?: string;
}

export const tokenQuery = z.object({ limit: pageLimit, before: entryId }).partial();

/** Query of `GET /admin/audit`. */
export interface AuditQuery extends PageQuery {
  /** Where to continue: `next` of the previous page. */
  before?: string;
  /** Only what this user, or this account and machine, has done. */
  actor?: string;
  /** Only what was done to this user, to the tokens of this owner, or to the settings of this provider. */
  target?: string;
  /** Only what was done in this way. */
  action?: AuditAction;
}

const name = z
  .string()
  .max(500, { error: 'must be at most 500 characters' })
  .refine((value) => !value.includes('\0'), 'must not contain NUL characters');

export const auditQuery = z
  .object({
    limit: pageLimit,
    before: entryId,
    actor: name,
    target: name,
    action: z.enum(auditActions),
  })
  .partial();

/** Before anything is done: no user has a name that is not allowed. Throws `not_found`. */
export const checkNameParam: RequestHandler = ({ params }, _response, next) => {
  if (!userName.safeParse(params.name).success) throw new Failure('not_found');
  next();
};

/** The first `limit` of the rows, which are one more than that when there is a next page; `next` is where it begins. */
export function toPage<T>(rows: readonly T[], limit: number, keyOf: (row: T) => string) {
  const data = rows.slice(0, limit);
  const last = rows.length > limit ? data.at(-1) : undefined;
  return { data, next: last === undefined ? null : keyOf(last) };
}
