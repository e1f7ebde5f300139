import { lstat, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, posix, resolve } from 'node:path';
import type { PostSource, PostTransfer } from '../../db/posts/post-transfer.js';
import { StartupError } from '../../shared/runtime/program.js';
import { printable } from '../output/table.js';
import { renderMarkdown } from './markdown-file.js';
import { isPostPath, listFiles } from './post-files.js';

/**
 * Writes a Markdown file for every post; only with `force` into a folder that is not empty. `prune` removes the files
 * of no post. Gives how many posts there are, the files that said something else before, and the files of no post.
 */
export async function exportToFolder(
  transfer: PostTransfer,
  folder: string,
  { force, prune }: { force: boolean; prune: boolean },
) {
  await mkdir(folder, { recursive: true });
  if (!force && (await readdir(folder)).length > 0)
    throw new StartupError(`${printable(folder)} is not empty; --force writes into it anyway.`);
  const before = (await listFiles(folder)).filter(({ isPost }) => isPost).map(({ path }) => path);
  const taken = new Set<string>();
  const take = (path: string) => !taken.has(fold(path)) && isImported(path) && taken.add(fold(path));
  // The files of this folder come first, where one of another folder has the same path.
  const isHere = (source: PostSource) => Number(source.folder === basename(resolve(folder)));
  const sources = (await transfer.sources()).sort((a, b) => isHere(b) - isHere(a));
  const paths = new Map(sources.filter(({ path }) => take(path)).map(({ id, path }) => [id, path]));
  const replaced: string[] = [];
  let count = 0;
  for await (const page of transfer.pages())
    for (const post of page) {
      const { id, slug } = post;
      const path = paths.get(id) ?? [`${slug}.md`, `${slug}-${id}.md`].find(take) ?? `${id}.md`;
      const text = renderMarkdown(post);
      const earlier = await readFile(join(folder, path), 'utf8').catch(() => text);
      await writeInside(folder, path, text);
      if (earlier !== text) replaced.push(path);
      count++;
    }
  const ofNoPost = before.filter((path) => !taken.has(fold(path)));
  if (prune && before.length > 0 && ofNoPost.length === before.length)
    throw new StartupError(
      `Nothing was removed: none of the Markdown files that were in ${printable(folder)} (${before.length}) belongs to a post.`,
    );
  if (prune) for (const path of ofNoPost) await rm(join(folder, path));
  return { count, replaced, ofNoPost };
}

/** Equal for names that are the same to some file systems; upper case first, because to them `ß` and `SS` are equal. */
const fold = (path: string): string => path.normalize('NFC').toUpperCase().toLowerCase().normalize('NFC');

/** Whether an import finds a post there, and no folder is named like a post's file; before 0.8 others were kept. */
const isImported = (path: string): boolean =>
  isPostPath(path) && posix.normalize(path) === path && !/^\/|\.(?:md|markdown)\//i.test(path);

/** Writes a whole file below a folder or none, because an import would take a part for an edit. Follows no links. */
async function writeInside(root: string, path: string, text: string) {
  for (let end = path.indexOf('/'); end !== -1; end = path.indexOf('/', end + 1)) {
    const parent = join(root, path.slice(0, end));
    await mkdir(parent, { recursive: true });
    if (!(await lstat(parent)).isDirectory())
      throw new StartupError(`${printable(parent)} cannot be written (a link leads elsewhere).`);
  }
  const unfinished = join(root, dirname(path), '.quillgate-export');
  await rm(unfinished, { force: true });
  await writeFile(unfinished, text, { flag: 'wx' });
  await rename(unfinished, join(root, path));
}
