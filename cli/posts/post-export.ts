import { constants } from 'node:fs';
import { lstat, mkdir, open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, posix, relative, resolve, sep } from 'node:path';
import type { PostSource, PostTransfer } from '../../db/posts/post-transfer.js';
import { StartupError } from '../../shared/runtime/program.js';
import { printable } from '../output/fleet-tables.js';
import type { ImpliedFacts, RawPost } from './imported-post.js';
import { readMarkdown, renderMarkdown } from './markdown-file.js';

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

/** Whether an import finds a post there, and no folder is named like a post's file; an old database may have others. */
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

/** Reads the posts of a folder; its other files are `skipped`. Throws `StartupError` when it cannot be read. */
export async function readPosts(folder: string) {
  const files = await listFiles(folder).catch((error) => {
    throw new StartupError(`${printable(folder)} cannot be read (${error.code}).`);
  });
  const posts: RawPost[] = [];
  const problems: string[] = [];
  for (const { path } of files.filter(({ isPost }) => isPost)) {
    const name = printable(path);
    const text = await readText(join(folder, path));
    const file = typeof text === 'string' ? readMarkdown(text) : { ...readMarkdown(''), ...text };
    problems.push(...file.problems.map((problem) => `${name}: ${problem}`));
    if (file.problems.length > 0) continue;
    const { head, content, fields } = file;
    const source = { folder: basename(resolve(folder)), path, head };
    posts.push({ name, fields, content, implied: impliedBy(folder, path, content), source });
  }
  const skipped = files.filter(({ isPost }) => !isPost).map(({ path }) => path);
  return { posts, problems, skipped };
}

const ending = /\.(?:md|markdown)$/i;
/** Hugo's `_index.md` is the page of a list, and names that begin with a dot are those of other programs. */
const isPostPath = (path: string): boolean =>
  ending.test(path) && !/(?:^|\/)(?:\.|_index\.[^/]*$)/i.test(path);

/**
 * The files and links in a folder at any depth, sorted by path, which is relative to it and uses `/`. Folders whose
 * names begin with a dot are left out. Links are not followed: one in a foreign folder could lead to a private file.
 */
async function listFiles(folder: string): Promise<{ path: string; isPost: boolean }[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => !entry.isDirectory())
    .map(({ parentPath, name }) => relative(folder, join(parentPath, name)).split(sep).join('/'))
    .filter((path) => !/(^|\/)\.[^/]*\//.test(path))
    .map((path) => ({ path, isPost: isPostPath(path) }))
    .sort((a, b) => (a.path < b.path ? -1 : 1));
}

/**
 * Jekyll's rules: `2019-03-04-my-post.md` gives day and title, and what is below `_drafts` is a draft. A plain heading
 * at the beginning is the title. `trip/index.md` is named for its folder.
 */
function impliedBy(folder: string, path: string, content: string): ImpliedFacts {
  const parent = basename(dirname(resolve(folder, path)));
  const stem = basename(path).replace(ending, '');
  const name = stem.replace(/^index(?=\.|$)/i, () => parent);
  const [, date = '', words = ''] = /^(\d{4}-\d{1,2}-\d{1,2})-(.+)$/u.exec(name) ?? [];
  const day = date === '' ? undefined : date.replace(/-(?=\d(?:-|$))/g, '-0');
  const title = words.replace(/(?:^|-+)(.)/gu, (_, letter: string) => ` ${letter.toUpperCase()}`).trim();
  const [, heading] = headingFirst.exec(content.slice(0, 2000)) ?? [];
  const hiddenBy = reasonsInPath(folder, path);
  return { name, day, hiddenBy, title: heading?.replace(/[*`]/g, '') ?? (day && title) ?? null };
}

/** Jekyll, Hexo, Astro and Docusaurus show nothing whose name begins with `_`, but for `_posts`: hexo.io/docs/setup. */
function reasonsInPath(folder: string, path: string): string[] {
  const isDraft = dirname(resolve(folder, path)).toLowerCase().split(sep).includes('_drafts');
  if (isDraft) return ['_drafts'];
  return /(?:^|\/)_(?!posts\/)/i.test(path) ? ['a name that begins with _'] : [];
}

/** A heading without links, HTML and escapes, which would have to be parsed to give a text. */
const headingFirst = /^(?:[ \t]*\r?\n)*# +([^\r\n[\]<>&\\_]{1,300}?)[ \t]*(?:\r?\n|$)/;

/** More than the longest content with the longest front matter takes. */
const maxBytes = 2 * 1024 * 1024;

async function readText(path: string): Promise<string | { problems: string[] }> {
  try {
    // To open a pipe would wait for its writer.
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
    const facts = await file.stat();
    if (!facts.isFile() || facts.size > maxBytes)
      return { problems: [`is not a file of at most ${maxBytes} bytes`] };
    const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
    const text = decoder.decode(await file.readFile());
    return text.includes('\0') ? { problems: ['must not contain NUL characters'] } : text;
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return { problems: ['is not UTF-8'] };
    return { problems: [code === 'ELOOP' ? 'is a symbolic link' : `cannot be read (${code})`] };
  }
}
