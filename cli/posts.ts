import { createPostTransfer } from '../db/post-transfer.js';
import { defaultOwner, type Environment, parseConfig } from '../shared/config.js';
import { CannotStart } from '../shared/program.js';
import { withDatabase } from './database.js';
import { exportToFolder } from './export-folder.js';
import { exportToJson } from './export-json.js';
import { findHeldSlugs, type ImportResult, storePosts } from './import-run.js';
import { giveSlugs, type NamedPost } from './import-slugs.js';
import { checkRawPost } from './imported-post.js';
import { printable, readPosts } from './post-files.js';
import { showProgress } from './progress.js';

/**
 * `quillgate posts import`: checks every post first, and stores none when one is wrong. Throws `CannotStart` with
 * everything that is wrong, or with what was stored when that is not all.
 */
export async function importPosts(environment: Environment, path: string): Promise<void> {
  const author = defaultOwner(parseConfig(environment, 'command'));
  const posts = await readChecked(path, author);
  const result = await withDatabase(environment, async (database) => {
    const transfer = createPostTransfer(database);
    refuseAny(await findHeldSlugs(transfer, posts));
    const progress = showProgress(posts.length);
    return await storePosts({ transfer, posts, onDone: progress.advance }).finally(progress.stop);
  });
  if (result.refused.length > 0 || result.uncertain.length > 0) throw new CannotStart(describePart(result));
  process.stderr.write(`${describeCounts(result)}\n`);
}

async function readChecked(path: string, defaultAuthor: string): Promise<NamedPost[]> {
  const found = await readPosts(path);
  const checks = found.posts.map((post) => checkRawPost(post, defaultAuthor));
  const wrong = checks.flatMap((check) => (check.kind === 'wrong' ? check.problems : []));
  const { posts, problems } = giveSlugs(checks.filter((check) => check.kind === 'checked'));
  refuseAny([...found.problems, ...wrong, ...problems]);
  return posts;
}

function refuseAny(problems: readonly string[]): void {
  if (problems.length > 0)
    throw new CannotStart(['Nothing was imported:', ...problems.map((problem) => `  ${problem}`)].join('\n'));
}

const describeCounts = ({ counts }: ImportResult): string =>
  `${counts.created} created, ${counts.changed} changed, ${counts.unchanged} unchanged`;

function describePart(result: ImportResult): string {
  const { refused, uncertain, untried } = result;
  const others = `${refused.length} refused, ${uncertain.length} uncertain, ${untried} not tried`;
  return [
    `Not everything was imported: ${describeCounts(result)}, ${others}.`,
    ...refused.map((post) => `  ${post}`),
    ...uncertain.map((post) => `  ${post}: the database stopped answering; it may be stored or not`),
    'Import again when this is mended: what is stored already stays as it is.',
  ].join('\n');
}

interface ExportOptions {
  force?: boolean;
  full?: boolean;
}

/**
 * `quillgate posts export`: to a folder, or to a file when the path ends in `.json`. Throws `CannotStart` when the place
 * cannot be written to or the database goes away.
 */
export async function exportPosts(
  environment: Environment,
  path: string,
  { force = false, full = false }: ExportOptions,
): Promise<void> {
  const toJson = path.endsWith('.json');
  let count = 0;
  try {
    await withDatabase(environment, async (database) => {
      const transfer = createPostTransfer(database);
      const progress = showProgress(await transfer.count());
      const onPost = () => {
        count++;
        progress.advance();
      };
      const to = { transfer, path, force, full, onPost };
      await (toJson ? exportToJson(to) : exportToFolder(to)).finally(progress.stop);
    });
  } catch (error) {
    if (!(error instanceof CannotStart) || count === 0 || toJson) throw error;
    throw new CannotStart(`${error.message} ${count} posts had been exported before.`);
  }
  process.stderr.write(`${count} ${count === 1 ? 'post' : 'posts'} exported to ${printable(path)}.\n`);
}
