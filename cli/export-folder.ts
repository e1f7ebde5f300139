import { constants } from 'node:fs';
import { lstat, mkdir, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { PostTransfer } from '../db/post-transfer.js';
import { CannotStart } from '../shared/program.js';
import { createExportPaths } from './export-paths.js';
import { renderHead } from './front-matter.js';
import { printable } from './post-files.js';

/** What an export writes, and where to. */
export interface Export {
  transfer: PostTransfer;
  path: string;
  /** Whether to write into a folder that is not empty, or over a file. */
  force: boolean;
  /** Whether to write every post anew, also one whose file could be given back as it was. */
  full: boolean;
  onPost: () => void;
}

/** Writes a Markdown file for every post. Throws `CannotStart` when the folder cannot be written to. */
export async function exportToFolder({ transfer, path, force, full, onPost }: Export): Promise<void> {
  const folder = await openFolder(path, { force });
  const paths = createExportPaths();
  const sources = full ? new Map<string, string>() : await transfer.sourcePaths();
  const claimed = new Map([...sources].filter(([, source]) => paths.claim(source)));
  for await (const page of transfer.pages()) {
    for (const { post, head } of page) {
      const oldHead = full ? null : head;
      const oldPath = oldHead === null ? undefined : claimed.get(post.id);
      await folder.write(oldPath ?? paths.claimFor(post), (oldHead ?? renderHead(post)) + post.content);
      onPost();
    }
  }
}

/** Waits for work on a file. Throws `CannotStart` with the file's path and the code of what went wrong. */
export async function written<T>(path: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error;
    throw new CannotStart(`${printable(path)} cannot be written (${error.code}).`);
  }
}

/** Writes files below a folder, and only there: it follows no links that it finds inside. */
async function openFolder(root: string, { force }: { force: boolean }) {
  await written(root, mkdir(root, { recursive: true }));
  if (!force && (await written(root, readdir(root))).length > 0)
    throw new CannotStart(`${printable(root)} is not empty; --force writes into it all the same.`);

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
    await using file = await open(join(root, ...names), newFile, 0o666);
    await file.writeFile(text, 'utf8');
  };
  return { write: (path: string, text: string) => written(join(root, path), write(path, text)) };
}

const newFile = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW;
