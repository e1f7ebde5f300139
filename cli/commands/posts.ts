import { createPostImport, type PostImport } from '../../db/posts/post-import.js';
import { type Environment, parseConfig } from '../../shared/config/config.js';
import { StartupError } from '../../shared/runtime/program.js';
import { isUnavailable, withDatabase } from '../database.js';
import { describeStrays, exportToFolder, type FilesBefore, removeStrays } from '../export/export-folder.js';
import { exportToJson } from '../export/export-json.js';
import { ownerByDefault } from '../identities.js';
import { findStale, identifyPosts, type NamedPost } from '../import/import-identities.js';
import { type ImportResult, storePosts } from '../import/import-run.js';
import { type CheckedPost, checkRawPost } from '../import/imported-post.js';
import { readPosts } from '../import/post-files.js';
import { printable } from '../output/table.js';

/**
 * `quillgate posts import`: checks every post first, and stores none when one is wrong. Throws `StartupError` with
 * everything that is wrong, or with what was stored when that is not all. A post that was changed since its file was
 * read is overwritten only with `force`.
 */
export async function importPosts(
  environment: Environment,
  path: string,
  { force = false }: { force?: boolean } = {},
): Promise<void> {
  const author = ownerByDefault(parseConfig(environment, 'command'));
  const checked = await readChecked(path, author);
  const result = await withDatabase(environment, async (database) => {
    const transfer = createPostImport(database);
    const posts = await identify(transfer, { checked, force });
    const isAvailable = async () => (await database.check()).database.status === 'ok';
    return await storePosts({ transfer, posts, force, isAvailable });
  });
  if (result.refused.length > 0 || result.uncertain.length > 0) throw new StartupError(describePart(result));
  process.stderr.write(`${describeCounts(result)}\n${describeUnused(checked)}`);
}

async function readChecked(path: string, defaultAuthor: string): Promise<CheckedPost[]> {
  const found = await readPosts(path);
  const checks = found.posts.map((post) => checkRawPost(post, defaultAuthor));
  const wrong = checks.flatMap((check) => (check.kind === 'wrong' ? check.problems : []));
  refuseAny([...found.problems, ...wrong]);
  return checks.filter((check) => check.kind === 'checked');
}

async function identify(
  transfer: PostImport,
  { checked, force }: { checked: readonly CheckedPost[]; force: boolean },
): Promise<NamedPost[]> {
  try {
    const { posts, problems } = await identifyPosts(transfer, checked);
    refuseAny(problems);
    if (!force) refuseAny(await findStale(transfer, posts));
    return posts;
  } catch (error) {
    if (isUnavailable(error)) throw new StartupError('Nothing was imported: the database stopped answering.');
    throw error;
  }
}

function refuseAny(problems: readonly string[]): void {
  if (problems.length > 0)
    throw new StartupError(
      ['Nothing was imported:', ...problems.map((problem) => `  ${problem}`)].join('\n'),
    );
}

const describeCounts = ({ counts }: ImportResult): string =>
  `${counts.created} created, ${counts.changed} changed, ${counts.unchanged} unchanged`;

/** More unknown names than this are those of another format. */
const maxUnused = 20;
const maxName = 64;

/** Names the fields of the files that posts do not have: they are not stored. */
function describeUnused(checked: readonly CheckedPost[]): string {
  const counts = new Map<string, number>();
  for (const name of checked.flatMap(({ unused }) => unused)) counts.set(name, (counts.get(name) ?? 0) + 1);
  if (counts.size === 0) return '';
  const named = [...counts]
    .sort(([a, countOfA], [b, countOfB]) => countOfB - countOfA || (a < b ? -1 : 1))
    .slice(0, maxUnused)
    .map(([name, count]) => `${shortened(printable(name))} (${count})`);
  const more = counts.size > maxUnused ? ` and ${counts.size - maxUnused} more` : '';
  return `Fields that were not used: ${named.join(', ')}${more}\n`;
}

const shortened = (name: string): string => (name.length > maxName ? `${name.slice(0, maxName)}…` : name);

function describePart(result: ImportResult): string {
  const { refused, uncertain, untried } = result;
  const others = `${refused.length} refused, ${uncertain.length} uncertain, ${untried} not tried`;
  return [
    `Not everything was imported: ${describeCounts(result)}, ${others}.`,
    ...refused.map((post) => `  ${post}`),
    ...uncertain.map((post) => `  ${post}: the database did not answer; it may be stored or not`),
    'Import again when this is mended: what is stored already stays as it is.',
  ].join('\n');
}

/**
 * `quillgate posts export`: to a folder, or to a file when the path ends in `.json`. Throws `StartupError` when the
 * place cannot be written to or the database becomes unavailable.
 */
export async function exportPosts(
  environment: Environment,
  path: string,
  { force = false, full = false, prune = false }: { force?: boolean; full?: boolean; prune?: boolean },
): Promise<void> {
  const toJson = path.endsWith('.json');
  if (toJson && prune) throw new StartupError('--prune is for folders.');
  let count = 0;
  let before: FilesBefore | undefined;
  try {
    await withDatabase(environment, async (database, config) => {
      const onPost = () => void count++;
      const to = { transfer: createPostImport(database), path, force, onPost };
      if (toJson) await exportToJson(to);
      else before = await exportToFolder({ ...to, full, defaultAuthor: ownerByDefault(config) });
    });
  } catch (error) {
    if (!(error instanceof StartupError) || count === 0 || toJson) throw error;
    throw new StartupError(`${error.message} ${count} posts had been exported before.`);
  }
  process.stderr.write(`${count} ${count === 1 ? 'post' : 'posts'} exported to ${printable(path)}.\n`);
  if (before !== undefined && before.ofNoPost.length > 0)
    process.stderr.write(prune ? await removeStrays(path, before) : describeStrays(before));
}
