import { constants, type Dirent } from 'node:fs';
import { open, readdir, stat } from 'node:fs/promises';
import { basename, join, relative, sep } from 'node:path';
import posix from 'node:path/posix';
import { StartupError } from '../../shared/runtime/program.js';
import { printable } from '../output/table.js';
import { parseTime } from '../output/time.js';
import { findMisplaced, readFrontMatter, splitFile } from './front-matter.js';
import { fieldNames, type ImpliedFields, type RawPost } from './imported-post.js';
import { titleOfMarkdown } from './markdown-title.js';

/** The posts that were found, and the problems of files that could not be read, which do not quote them. */
export interface FoundPosts {
  posts: RawPost[];
  problems: string[];
}

/** Reads the posts of a JSON file or of a folder of Markdown files. Throws `StartupError` for an unreadable path. */
export async function readPosts(path: string): Promise<FoundPosts> {
  try {
    return (await stat(path)).isDirectory() ? await readFolder(path) : await readJson(path);
  } catch (error) {
    if (!(error instanceof Error && 'syscall' in error)) throw error;
    throw new StartupError(`${printable(path)} cannot be read (${codeOf(error)}).`);
  }
}

/** Follows no links: one in a foreign folder could lead to a private file, which the import would publish. */
async function readFolder(folder: string): Promise<FoundPosts> {
  const found: FoundPosts = { posts: [], problems: [] };
  for (const { path, entry } of await listFolder(folder)) {
    const { post, problems } = await readEntry(folder, path, entry);
    if (post !== undefined) found.posts.push(post);
    found.problems.push(...problems.map((problem) => `${printable(path)}: ${problem}`));
  }
  return found;
}

async function readEntry(folder: string, path: string, entry: Dirent): Promise<ParsedFile> {
  if (entry.isSymbolicLink() && (isMarkdown(entry) || (await leadsToFolder(join(folder, path)))))
    return { problems: [isLink] };
  return isMarkdown(entry) ? readMarkdown(folder, path) : { problems: [] };
}

const isLink = 'is a symbolic link';

const isMarkdown = (entry: Dirent): boolean => entry.name.endsWith('.md') && !entry.isDirectory();

const leadsToFolder = (path: string): Promise<boolean> =>
  stat(path).then(
    (facts) => facts.isDirectory(),
    () => false,
  );

/** The paths of `*.md` at any depth of a folder, links too. */
export async function listMarkdown(folder: string): Promise<string[]> {
  const entries = await listFolder(folder);
  return entries.filter(({ entry }) => isMarkdown(entry)).map(({ path }) => path);
}

/**
 * Everything in a folder at any depth, sorted by its path, which is relative to the folder and uses `/`. Names that
 * begin with a dot are left out, as shells do. Links are not followed.
 */
async function listFolder(folder: string): Promise<{ path: string; entry: Dirent }[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .map((entry) => ({
      entry,
      path: relative(folder, join(entry.parentPath, entry.name)).split(sep).join('/'),
    }))
    .filter(({ path }) => !/(^|\/)\./.test(path))
    .sort((a, b) => (a.path < b.path ? -1 : 1));
}

async function readMarkdown(folder: string, path: string): Promise<ParsedFile> {
  const text = await readText(join(folder, path), { follow: false, maxBytes: maxBytesOfMarkdown });
  return typeof text === 'string' ? parseMarkdown(path, text) : { problems: [text.problem] };
}

interface ParsedFile {
  post?: RawPost;
  problems: string[];
}

/** Parses the text of a file; its path is relative to the folder that is imported. */
export function parseMarkdown(path: string, text: string): ParsedFile {
  const { head, yaml, content } = splitFile(text);
  const misplaced = yaml === undefined ? findMisplaced(content) : undefined;
  if (misplaced !== undefined) return { problems: [misplaced] };
  const { fields, others, problems } = readFrontMatter(yaml ?? '', fieldNames);
  if (problems.length > 0) return { problems };
  const post: RawPost = {
    name: printable(path),
    fields,
    content,
    implied: impliedBy(path, content),
    fallbackTitle: basename(path, '.md'),
    source: { path, head },
    unused: others,
  };
  return { post, problems };
}

/**
 * The fields that a Markdown file implies for its post without front matter, by Jekyll's rules: a name like
 * `2019-03-04-my-post.md` gives the day and the title, and files in the folder `_drafts` are not published. If the text
 * begins with a first-level heading, that is the title instead.
 */
function impliedBy(path: string, content: string): ImpliedFields {
  const [, day, words] = /^(\d{4}-\d{2}-\d{2})-(.+)$/u.exec(posix.basename(path, '.md')) ?? [];
  const isDated = day !== undefined && parseTime(day) !== undefined;
  return {
    title: titleOfMarkdown(content) ?? (isDated && words !== undefined ? titleOfName(words) : null),
    day: isDated ? day : undefined,
    isInDrafts: posix.dirname(path).toLowerCase().split('/').includes('_drafts'),
  };
}

const titleOfName = (words: string): string =>
  words
    .split('-')
    .filter((word) => word !== '')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join(' ');

async function readJson(path: string): Promise<FoundPosts> {
  const name = printable(path);
  const text = await readText(path, { follow: true, maxBytes: Number.POSITIVE_INFINITY });
  if (typeof text !== 'string') return { posts: [], problems: [`${name}: ${text.problem}`] };
  const list = parseList(text.replace(/^\uFEFF/, ''));
  if (list === undefined) return { posts: [], problems: [`${name}: must be a JSON array of posts`] };
  const posts = list.map((item, index) => toRawPost(item, `${name}: post ${index + 1}`));
  return { posts, problems: [] };
}

function parseList(text: string): unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** An item that is not an object has no content, which the check of the post reports. */
function toRawPost(item: unknown, name: string): RawPost {
  const fields = new Map(Object.entries(typeof item === 'object' && item !== null ? item : {}));
  return {
    name,
    fields: new Map([...fields].filter(([field]) => fieldNames.has(field))),
    content: fields.get('content'),
    implied: undefined,
    fallbackTitle: null,
    source: undefined,
    unused: [...fields.keys()].filter((field) => field !== 'content' && !fieldNames.has(field)),
  };
}

/** More than the longest content with a long head takes. */
const maxBytesOfMarkdown = 4 * 1024 * 1024;

async function readText(path: string, { follow, maxBytes }: { follow: boolean; maxBytes: number }) {
  try {
    // A blocking `open` of a pipe would wait for its writer.
    const flags = constants.O_RDONLY | constants.O_NONBLOCK | (follow ? 0 : constants.O_NOFOLLOW);
    await using file = await open(path, flags);
    const facts = await file.stat();
    if (!facts.isFile()) return { problem: 'is not a file' };
    if (facts.size > maxBytes) return { problem: `is larger than ${maxBytes} bytes` };
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(await file.readFile());
  } catch (error) {
    const code = codeOf(error);
    if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return { problem: 'is not UTF-8' };
    return { problem: code === 'ELOOP' && !follow ? isLink : `cannot be read (${code})` };
  }
}

const codeOf = (error: unknown): string => String((error as NodeJS.ErrnoException).code);
