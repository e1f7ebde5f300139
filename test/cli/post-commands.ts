import { join } from 'node:path';
import { afterAll, beforeEach, expect } from 'vitest';
import { exportPosts, importPosts } from '../../cli/commands/posts.js';
import { sql } from '../../db/database/drizzle.js';
import type { PostFields } from '../../db/posts/post-creation.js';
import { createPostImport } from '../../db/posts/post-import.js';
import { PostStore } from '../../db/posts/post-store.js';
import type { Environment } from '../../shared/config/config.js';
import { StartupError } from '../../shared/runtime/program.js';
import { openTestDatabase } from '../support/database.js';
import { makeFolder, readTree, type Tree } from '../support/folders.js';
import { collectOutput, printedBy } from './output.js';

/** An empty database for each test of the file, and the commands on its posts. */
export async function openPosts({ poolSize = 1 } = {}) {
  const { database, url, stop } = await openTestDatabase({ poolSize });
  const forget = () => database.run((db) => db.execute(sql`truncate posts cascade`));
  afterAll(stop);
  beforeEach(forget);
  const environment = { DATABASE_URL: url };
  const store = new PostStore(database);
  const transfer = createPostImport(database);
  const defaults = { author: 'blog', status: 'published', slug: undefined, title: null } as const;
  return {
    ...{ database, environment, store, transfer, forget },
    create: (facts: Partial<PostFields>) =>
      store.create({ ...defaults, tags: [], content: 'text', ...facts }),
    idOf: async (slug: string) => (await transfer.slugOwners([slug])).get(slug)?.id ?? 'none',
    ...commandsOn(environment),
  };
}

/** The commands on posts in an environment. */
export const commandsOn = (environment: Environment) => ({
  importFrom: (path: string) => importFrom(environment, path),
  /** Why nothing, or not all of it, was imported. */
  refusalOf: (path: string) => complaintOf(importFrom(environment, path)),
  exportTree: (options?: { full?: boolean }) => exportTree(environment, options),
  exportJson: () => exportJson(environment),
});

/** Imports a path and gives what was said; rejects as the command does. */
export async function importFrom(environment: Environment, path: string): Promise<string> {
  return (await printedBy(() => importPosts(environment, path))).stderr;
}

/** The message of a command that gives up. */
export async function complaintOf(command: Promise<unknown>): Promise<string> {
  const error = await command.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(StartupError);
  return (error as StartupError).message;
}

/** Exports to a new folder and gives its files. */
export async function exportTree(environment: Environment, { full = false } = {}): Promise<Tree> {
  collectOutput();
  const folder = makeFolder();
  await exportPosts(environment, folder, { full });
  return readTree(folder);
}

/** Exports to a JSON file and gives its text. */
async function exportJson(environment: Environment): Promise<string> {
  collectOutput();
  const folder = makeFolder();
  await exportPosts(environment, join(folder, 'posts.json'), {});
  return Buffer.from(readTree(folder)['posts.json'] ?? '', 'latin1').toString('utf8');
}
