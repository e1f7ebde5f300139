import { constants, type Dirent } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { StartupError } from '../../shared/runtime/program.js';
import { printable } from '../output/table.js';
import { parseTime } from '../output/time.js';
import type { RawPost } from './imported-post.js';
import { readMarkdown } from './markdown-file.js';

interface FoundPosts {
  posts: RawPost[];
  problems: string[];
  /** The files that are no posts. */
  skipped: string[];
}

/** Reads the posts of a folder. Throws `StartupError` when it cannot be read. */
export async function readPosts(folder: string): Promise<FoundPosts> {
  const found: FoundPosts = { posts: [], problems: [], skipped: [] };
  const files = await listFiles(folder).catch((error) => {
    throw new StartupError(`${printable(folder)} cannot be read (${error.code}).`);
  });
  for (const { path, isPost } of files) {
    if (isPost) await readPost(folder, path, found);
    else found.skipped.push(path);
  }
  return found;
}

const ending = /\.(?:md|markdown)$/i;
/** Hugo's `_index.md` is the page of a list, and names that begin with a dot are those of other programs. */
const isPostName = (name: string): boolean => ending.test(name) && !/^(?:\.|_index\.)/i.test(name);

/**
 * The files and links in a folder at any depth, sorted by path, which is relative to it and uses `/`. Folders whose
 * names begin with a dot are left out. Links are not followed: one in a foreign folder could lead to a private file.
 */
export async function listFiles(folder: string): Promise<{ path: string; isPost: boolean }[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const pathOf = ({ parentPath, name }: Dirent) =>
    relative(folder, join(parentPath, name)).split(sep).join('/');
  return entries
    .filter((entry) => !entry.isDirectory() && !/(^|\/)\.[^/]*\//.test(pathOf(entry)))
    .map((entry) => ({ path: pathOf(entry), isPost: isPostName(entry.name) }))
    .sort((a, b) => (a.path < b.path ? -1 : 1));
}

async function readPost(folder: string, path: string, found: FoundPosts): Promise<void> {
  const name = printable(path);
  const text = await readText(join(folder, path));
  if (typeof text !== 'string') return void found.problems.push(`${name}: ${text.problem}`);
  const { head, content, fields, problems } = readMarkdown(text);
  found.problems.push(...problems.map((problem) => `${name}: ${problem}`));
  const source = { folder: basename(resolve(folder)), path, head };
  if (problems.length === 0)
    found.posts.push({ name, fields, content, implied: impliedBy(folder, path, content), source });
}

/**
 * Jekyll's rules: `2019-03-04-my-post.md` gives day and title, and what is in `_drafts` is a draft. A plain heading at
 * the beginning is the title. `trip/index.md` is named for its folder.
 */
function impliedBy(folder: string, path: string, content: string): RawPost['implied'] {
  const parent = basename(dirname(resolve(folder, path)));
  const stem = basename(path).replace(ending, '');
  const name = stem.replace(/^index(?=\.|$)/i, () => parent);
  const [, date = '', words = ''] = /^(\d{4}-\d{2}-\d{2})-(.+)$/u.exec(name) ?? [];
  const day = parseTime(date) === undefined ? undefined : date;
  const title = words.replace(/(?:^|-+)(.)/gu, (_, letter: string) => ` ${letter.toUpperCase()}`).trim();
  const [, heading] = headingFirst.exec(content.slice(0, 2000)) ?? [];
  const isDraft = dirname(path).toLowerCase().split('/').includes('_drafts');
  return { name, day, isDraft, title: heading?.replace(/[*`]/g, '') ?? (day && title) ?? null };
}

/** A heading without links, HTML and escapes, which would have to be parsed to give a text. */
const headingFirst = /^(?:[ \t]*\r?\n)*# +([^\r\n[\]<>&\\_]{1,300}?)[ \t]*(?:\r?\n|$)/;

async function readText(path: string): Promise<string | { problem: string }> {
  try {
    // To open a pipe would wait for its writer.
    const flag = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
    const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
    const text = decoder.decode(await readFile(path, { flag }));
    return text.includes('\0') ? { problem: 'must not contain NUL characters' } : text;
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return { problem: 'is not UTF-8' };
    return { problem: code === 'ELOOP' ? 'is a symbolic link' : `cannot be read (${code})` };
  }
}
