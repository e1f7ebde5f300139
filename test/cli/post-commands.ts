import { afterAll, beforeEach } from 'vitest';
import { exportPosts, importPosts } from '../../cli/commands/posts.js';
import { sql } from '../../db/database/drizzle.js';
import type { PostFields } from '../../db/posts/post-creation.js';
import { PostStore } from '../../db/posts/post-store.js';
import { PostTransfer } from '../../db/posts/post-transfer.js';
import type { Environment } from '../../shared/config/config.js';
import type { Post } from '../../shared/contracts/contract.js';
import { openTestDatabase } from '../support/database.js';
import { makeFolder, readTree, type Tree } from '../support/folders.js';
import { collectOutput, complaintOf, printedBy } from './output.js';

/** An empty database for each test of the file, and the commands on its posts. */
export async function openPosts({ poolSize = 1 } = {}) {
  const { database, url, stop } = await openTestDatabase({ poolSize });
  const forget = () => database.run((db) => db.execute(sql`truncate posts cascade`));
  afterAll(stop);
  beforeEach(forget);
  const environment = { DATABASE_URL: url };
  const store = new PostStore(database);
  const transfer = new PostTransfer(database);
  const defaults = { author: 'blog', status: 'published', slug: undefined, title: null } as const;
  const all = async (): Promise<Post[]> => {
    const posts = [];
    for await (const page of transfer.pages()) posts.push(...page);
    return posts;
  };
  return {
    ...{ database, environment, store, transfer, forget, all },
    create: (facts: Partial<PostFields>) =>
      store.create({ ...defaults, tags: [], content: 'text', ...facts }),
    /** The content of every post by its slug. */
    contents: async () => Object.fromEntries((await all()).map(({ slug, content }) => [slug, content])),
    idOf: async (slug: string) => (await store.getBySlug(slug, { drafts: true }))?.id ?? 'none',
    importFrom: (path: string, options?: { force: boolean }) => importFrom(environment, path, options),
    /** Why nothing, or not all of it, was imported. */
    refusalOf: (path: string, options?: { force: boolean }) =>
      complaintOf(importFrom(environment, path, options)),
    exportTree: () => exportTree(environment),
  };
}

/** Imports a folder and gives what was said; rejects as the command does. */
export async function importFrom(
  environment: Environment,
  path: string,
  options?: { force: boolean },
): Promise<string> {
  return (await printedBy(() => importPosts(environment, path, options))).stderr;
}

/** Exports to a new folder and gives its files. */
export async function exportTree(environment: Environment): Promise<Tree> {
  collectOutput();
  const folder = makeFolder();
  await exportPosts(environment, folder, {});
  return readTree(folder);
}
