import { validate } from 'uuid';
import { firstUserOf } from '../access/users.js';
import { type SQL, sql } from '../database/drizzle.js';
import { audit, tokens, users } from '../schema.js';

/**
 * A query of the ids that a user's name or id stands for: of all who had the name, and of the environment's user. What
 * has the form of an id is one, so that no name stands for the user of another.
 */
export function userIds(user: string): SQL {
  if (validate(user)) return sql`select ${user.toLowerCase()}::text`;
  return sql`select ${user}::text union select ${firstUserOf(user).id}::text
    union select id::text from ${users} where name = ${user}
    union select target_id::text from ${audit} where target_name = ${user} and action = 'users.remove'`;
}

/** The same of access tokens. */
export const tokenIds = (token: string): SQL =>
  validate(token)
    ? sql`select ${token.toLowerCase()}::text`
    : sql`select id::text from ${tokens} where name = ${token}`;
