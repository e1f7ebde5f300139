import type { UserIdentity } from '../../db/access/users.js';

/** A user with this name, whose id is made from it. */
export const userNamed = (name: string): UserIdentity => ({
  id: `id of ${name}`,
  name,
  createdAt: new Date(0),
});
