import type { UserIdentity } from '../../db/access/users.js';

/** A user of the name, who has been there since ever; the id is made of the name. */
export const userNamed = (name: string): UserIdentity => ({
  id: `id of ${name}`,
  name,
  createdAt: new Date(0),
});
