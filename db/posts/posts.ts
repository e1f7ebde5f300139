import type { Database } from '../database/client.js';
import { createPostChanges } from './post-changes.js';
import { createPostCreation } from './post-creation.js';
import { createPostLists } from './post-lists.js';
import { createPostReader } from './post-reader.js';
import type { PostStore } from './post-store.js';

/** The store of the posts in this database. */
export function createPostStore(database: Database): PostStore {
  const read = createPostReader();
  return {
    create: createPostCreation(database),
    get: (id, options) => read(database, id, options),
    ...createPostLists(database),
    ...createPostChanges({ database, read }),
  };
}
