import { constants } from 'node:fs';
import { lstat, mkdir, open, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { PostSource } from '../../db/posts/post-export.js';
import type { PostImport } from '../../db/posts/post-import.js';
import { StartupError } from '../../shared/runtime/program.js';
import { isUnavailable } from '../database.js';
import { splitFile } from '../import/front-matter.js';
import { listMarkdown } from '../import/post-files.js';
import { printable } from '../output/table.js';
import { headOf } from './export-head.js';
import { ExportPaths } from './export-paths.js';

/** The options of an export. */
export interface Export {
  transfer: PostImport;
  path: string;
  /** Whether to write into a folder that is not empty, or to overwrite a file. */
  force: boolean;
  onPost: () => void;
}

interface FolderExport extends Export {
  /** Whether to write every field of every post, even where the imported file could be restored unchanged. */
  full: boolean;
  defaultAuthor: string;
}

/** The Markdown files that were in a folder before an export. */
export interface FilesBefore {
  count: number;
  /** Those that belong to no post: of removed posts, or new ones that were not imported yet. */
  ofNoPost: string[];
}

/**
 * Writes a Markdown file for every post, to the path of the file that it came from, if any. Throws `StartupError` when
 * the folder cannot be written to.
 */
export async function exportToFolder(to: FolderExport): Promise<FilesBefore> {
  const { transfer, path: root, force, full, defaultAuthor, onPost } = to;
  const folder = await openFolder(root, { force });
  const before = await written(root, listMarkdown(root));
  const paths = new ExportPaths();
  const claimed = new Map([...(await transfer.sourcePaths())].filter(([, path]) => paths.claim(path)));
  for await (const page of transfer.pages()) {
    for (const { post, source } of page) {
      const path = claimed.get(post.id) ?? paths.claimFor(post);
      const head = headOf({ post, path, source: full ? null : source, defaultAuthor });
      const isRenewed = !full && source?.isCurrent === false && (await holds(join(root, path), source));
      await folder.write(path, head + post.content);
      if (isRenewed) await record(transfer.markExported(post.id, { version: post.version, path, head }));
      onPost();
    }
  }
  return { count: before.length, ofNoPost: before.filter((path) => !paths.isClaimed(path)) };
}

/** Explains the files that belong to no post. */
export const describeStrays = ({ ofNoPost }: FilesBefore): string =>
  `Markdown files there that belong to no post: ${ofNoPost.length}. An import would make posts of them; --prune removes them.\n`;

/**
 * Removes the files that belong to no post and lists them. Throws `StartupError` when one cannot be removed, and
 * removes none when no file belongs to a post, as in an unrelated folder.
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

/**
 * Whether the path still has the file that the post came from, so that this is its folder: once overwritten, that file
 * has the current post. A copy in another folder does not count: importing the old file would undo the change.
 */
async function holds(path: string, { head }: PostSource): Promise<boolean> {
  const text = await readFile(path, 'utf8').catch(() => undefined);
  return text !== undefined && splitFile(text).head === head;
}

/** Ignores that a read-only database refuses this: an export works there as well. */
async function record(marking: Promise<void>): Promise<void> {
  await marking.catch((error: unknown) => {
    if (!isUnavailable(error)) throw error;
  });
}

/** Waits for work on a file. Throws `StartupError` with the file's path and the error's code. */
export async function written<T>(path: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error;
    throw new StartupError(`${printable(path)} cannot be written (${error.code}).`);
  }
}

/** Writes files only below a folder: links inside it are not followed. */
async function openFolder(root: string, { force }: { force: boolean }) {
  await written(root, mkdir(root, { recursive: true }));
  if (!force && (await written(root, readdir(root))).length > 0)
    throw new StartupError(`${printable(root)} is not empty; --force writes into it all the same.`);

  const entered = new Set<string>();
  const enter = async (folder: string): Promise<void> => {
    if (entered.has(folder)) return;
    await mkdir(folder).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST' || !(await lstat(folder)).isDirectory()) throw error;
    });
    entered.add(folder);
  };
  const write = async (path: string, text: string): Promise<void> => {
    const names = path.split('/');
    for (let depth = 1; depth < names.length; depth++) await enter(join(root, ...names.slice(0, depth)));
    await using file = await open(join(root, ...names), force ? anyFile : newFile, 0o666);
    await file.writeFile(text, 'utf8');
  };
  return { write: (path: string, text: string) => written(join(root, path), write(path, text)) };
}

const anyFile = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW;
const newFile = anyFile | constants.O_EXCL;
