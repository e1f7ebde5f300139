import { join } from 'node:path';
import { expect } from 'vitest';
import { exportPosts, importPosts } from '../../cli/commands/posts.js';
import type { Database } from '../../db/database/client.js';
import { sql } from '../../db/database/drizzle.js';
import type { Environment } from '../../shared/config/config.js';
import { StartupError } from '../../shared/runtime/program.js';
import { makeFolder, readTree, type Tree } from '../support/folders.js';
import { collectOutput } from './output.js';

/** Forgets every post. */
export const forgetPosts = (database: Database) =>
  database.run((db) => db.execute(sql`truncate posts cascade`));

/** Imports a path and gives what was said; rejects as the command does. */
export async function importFrom(environment: Environment, path: string): Promise<string> {
  const output = collectOutput();
  await importPosts(environment, path);
  return output.stderr;
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
export async function exportJson(environment: Environment): Promise<string> {
  collectOutput();
  const folder = makeFolder();
  await exportPosts(environment, join(folder, 'posts.json'), {});
  return Buffer.from(readTree(folder)['posts.json'] ?? '', 'latin1').toString('utf8');
}
