import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { MissingStore } from './conditions.js';
import { findEmbeddedStore } from './embedded-store.js';
import type { Options, StoreName } from './options.js';
import { findRedisStore } from './redis-store.js';
import type { StoreChoice } from './store.js';

/** The stores that were asked for, each with a new folder below `dir`, or why one cannot run here. */
export const findStores = (options: Options, dir: string): Promise<(StoreChoice | MissingStore)[]> =>
  Promise.all(options.stores.map((name) => findStore(name, options, dir)));

async function findStore(
  name: StoreName,
  options: Options,
  dir: string,
): Promise<StoreChoice | MissingStore> {
  const own = join(dir, name);
  mkdirSync(own);
  try {
    return name === 'redis'
      ? await findRedisStore(options.redisUrl, options.peer ? 'everysec' : 'none')
      : await findEmbeddedStore(own);
  } catch (error) {
    return { name, missing: (error as Error).message };
  }
}
