import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { StartupError } from '../../shared/runtime/program.js';
import { printable } from '../import/post-files.js';
import { type FilesBefore, written } from './export-folder.js';

/** Tells what such files mean. */
export const describeStrays = ({ ofNoPost }: FilesBefore): string =>
  `Markdown files there that belong to no post: ${ofNoPost.length}. An import would make posts of them; --prune removes them.\n`;

/**
 * Removes them from the folder and tells which. Throws `StartupError` when one cannot be removed; and removes none when
 * they are all that there was, as in a folder that has nothing to do with these posts.
 */
export async function removeStrays(folder: string, { count, ofNoPost }: FilesBefore): Promise<string> {
  if (ofNoPost.length === count)
    throw new StartupError(
      `Nothing was removed: none of the Markdown files that were in ${printable(folder)} (${count}) belongs to a post.`,
    );
  for (const path of ofNoPost) await written(join(folder, path), rm(join(folder, path)));
  const names = ofNoPost.map((path) => `  ${printable(path)}\n`).join('');
  return `Markdown files removed that belonged to no post: ${ofNoPost.length}\n${names}`;
}
