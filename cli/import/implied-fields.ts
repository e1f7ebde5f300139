import { basename, dirname } from 'node:path/posix';
import { titleOfMarkdown } from '../../api/blog/rendering/markdown-title.js';
import { parseTime } from '../output/time.js';
import type { ImpliedFields } from './imported-post.js';

/**
 * What a Markdown file says about its post without front matter, as Jekyll has it: a name like `2019-03-04-my-post.md`
 * begins with the day and is a title, and what is in the folder `_drafts` is not published. A heading of the first level
 * with which the text begins is the better title.
 */
export function impliedBy(path: string, content: string): ImpliedFields {
  const [, day, words] = /^(\d{4}-\d{2}-\d{2})-(.+)$/u.exec(basename(path, '.md')) ?? [];
  const isDated = day !== undefined && parseTime(day) !== undefined;
  return {
    title: titleOfMarkdown(content) ?? (isDated && words !== undefined ? titleOfName(words) : null),
    day: isDated ? day : undefined,
    isInDrafts: dirname(path).toLowerCase().split('/').includes('_drafts'),
  };
}

const titleOfName = (words: string): string =>
  words
    .split('-')
    .filter((word) => word !== '')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join(' ');
