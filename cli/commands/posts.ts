import { extname } from 'node:path';
import { PostTransfer } from '../../db/posts/post-transfer.js';
import { type Environment, parseConfig } from '../../shared/config/config.js';
import { StartupError } from '../../shared/runtime/program.js';
import { ownerByDefault, withDatabase } from '../database.js';
import { printable } from '../output/fleet-tables.js';
import { checkPost } from '../posts/imported-post.js';
import { exportToFolder, readPosts } from '../posts/post-export.js';
import { findProblems, storePosts } from '../posts/post-import.js';

/**
 * `quillgate posts import`: checks every post first, and stores none when one is wrong. Throws `StartupError` with
 * everything that is wrong, or with what was stored when that is not all. A post is changed only by the file that made
 * it, or by one that was written from its current version, unless `force` is set.
 */
export async function importPosts(
  environment: Environment,
  path: string,
  { force = false }: { force?: boolean } = {},
): Promise<void> {
  const author = ownerByDefault(parseConfig(environment, 'command'));
  if (path.endsWith('.json'))
    throw new StartupError(
      'Posts are imported from a folder; docs/blog.md says how a JSON file of 0.7 becomes one.',
    );
  const found = await readPosts(path);
  const checks = found.posts.map((post) => checkPost(post, author));
  refuseAny([...found.problems, ...checks.flatMap(({ problems }) => problems)]);
  const checked = checks.flatMap(({ post }) => post ?? []);
  const { counts, problems } = await withDatabase(environment, async (database) => {
    const transfer = new PostTransfer(database);
    refuseAny(await findProblems(transfer, checked, force));
    return storePosts(transfer, checked, force);
  });
  const done = `${counts.created} created, ${counts.changed} changed, ${counts.unchanged} unchanged`;
  if (problems.length > 0)
    throw new StartupError(
      [
        `Not everything was imported: ${done}; what is stored stays when you import again.`,
        ...problems.map(indented),
      ].join('\n'),
    );
  const hidden = checked.flatMap(({ name, hiddenBy }) => hiddenBy.map((reason) => ({ group: reason, name })));
  const unused = checked.flatMap((post) => post.unused.map((group) => ({ group, name: post.name })));
  const skipped = found.skipped.map((name) => ({ group: extname(name) || 'no ending', name }));
  process.stderr.write(
    `${done}\n${describe('Drafts, because of', hidden)}${describe('Fields that were not used', unused)}${describe('Files that were not read', skipped)}`,
  );
}

function refuseAny(problems: readonly string[]): void {
  if (problems.length > 0)
    throw new StartupError(['Nothing was imported:', ...problems.map(indented)].join('\n'));
}

const indented = (line: string): string => `  ${line}`;
const maxListed = 20;
const maxName = 64;

/** Names files in groups, the largest first. */
function describe(title: string, entries: readonly { group: string; name: string }[]): string {
  const groups = [...Map.groupBy(entries, ({ group }) => group)].sort(([, a], [, b]) => b.length - a.length);
  const lines = groups.map(([group, of]) => {
    const more = of.length > maxListed ? `, and ${of.length - maxListed} more` : '';
    const names = of.slice(0, maxListed).map(({ name }) => name);
    return `  ${printable(group.slice(0, maxName))} (${of.length}): ${printable(names.join(', '))}${more}\n`;
  });
  return lines.length === 0 ? '' : `${title}:\n${lines.join('')}`;
}

/** `quillgate posts export`. Throws `StartupError` when the folder cannot be written to or the database is away. */
export async function exportPosts(
  environment: Environment,
  folder: string,
  { force = false, prune = false }: { force?: boolean; prune?: boolean },
): Promise<void> {
  if (folder.endsWith('.json'))
    throw new StartupError('Posts are exported to a folder; GET /blogs gives JSON.');
  const { count, replaced, ofNoPost } = await withDatabase(environment, (database) =>
    exportToFolder(new PostTransfer(database), folder, { force, prune }),
  ).catch((error: unknown) => {
    if (!(error instanceof Error && 'syscall' in error)) throw error;
    const { code, path = folder, dest = path } = error as NodeJS.ErrnoException & { dest?: string };
    throw new StartupError(`${printable(dest)} cannot be written (${code}).`);
  });
  process.stderr.write(`${count} ${count === 1 ? 'post' : 'posts'} exported to ${printable(folder)}.\n`);
  say('Overwritten files that had other content', replaced);
  if (prune) say('Markdown files removed that belonged to no post', ofNoPost);
  else say('Markdown files of no post; an import would make posts of them, --prune removes them', ofNoPost);
}

function say(title: string, paths: readonly string[]): void {
  const names = paths.map((path) => indented(printable(path)));
  if (paths.length > 0) process.stderr.write(`${[`${title}: ${paths.length}`, ...names].join('\n')}\n`);
}
