import { fileURLToPath } from 'node:url';
import type { Beside } from '../chat.js';
import { migrate } from '../gateway.js';
import type { Traffic } from '../load.js';
import type { Options } from '../options.js';
import { failureOf, newPlace, type Place, startProgram } from '../programs.js';
import { type Compared, compare, type Row, type Side } from '../rows.js';
import { startDatabase } from '../stores.js';
import { type Seeded, seedPosts } from './seed.js';

/** What is asked, of JSON without a token unless it says otherwise: so the public reads. */
type Task = (seeded: Seeded) => Omit<Traffic, 'origin' | 'expected'> & Partial<Traffic>;

const token = 'only-on-loopback-and-only-for-the-benchmark';
const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
const pathOf = (id: string) => `/blogs/${id}`;
const firstPage = '/blogs?limit=20';
const search = (words: readonly string[]) => ({ paths: words.map((word) => `/blogs?q=${word}`) });
const asPage = (paths: string[]) => ({ headers: { Accept: 'text/html' }, expected: 'page', paths }) as const;
const tags = Array.from({ length: 199 }, (_, n) => `tag-${n + 1}`);

/** Many callers where as much as possible is to be carried, few where an answer's time is asked for. Writes come last. */
const tasks: Record<string, readonly [callers: number, Task]> = {
  'a post': [32, ({ ids }) => ({ paths: ids.map(pathOf) })],
  'a page of twenty': [32, () => ({ paths: [firstPage] })],
  'the 500th page': [32, ({ cursor }) => ({ paths: [`${firstPage}&cursor=${cursor}`] })],
  'search, rare words': [2, ({ words }) => search(words.rare)],
  'search, medium words': [2, ({ words }) => search(words.medium)],
  'search, common words': [2, ({ words }) => search(words.common)],
  'by tag': [2, () => ({ paths: tags.map((tag) => `${firstPage}&tag=${tag}`) })],
  'a post for people': [2, ({ slugs }) => asPage(slugs.map(pathOf))],
  'the index for people': [2, () => asPage(['/blogs'])],
  'changing a post': [32, ({ ids, contents }) => ({ ...write('PATCH', contents), paths: ids.map(pathOf) })],
  'a new post': [32, ({ contents }) => ({ ...write('POST', contents), paths: ['/blogs'], status: 201 })],
};

function write(method: 'PATCH' | 'POST', contents: readonly string[]) {
  const post = (content: string) => ({ title: 'Post {unique}', content, tags: ['tag-7', 'benchmark'] });
  return { method, headers, bodies: contents.map((content) => JSON.stringify(post(content))) };
}

/** A bare Express has only the first two and the last, and is asked by each number of callers. */
function rowsOf({ peer, connections }: Options): Row<Task>[] {
  const row = (title: string, count: number, task: Task): Row<Task> => {
    return { title: `${title}, callers ${count}`, task, connections: count };
  };
  const all = Object.entries(tasks);
  if (peer !== 'express') return all.map(([title, [callers, task]]) => row(title, callers, task));
  const plain = all.filter((_, place) => place < 2 || place === all.length - 1);
  return plain.flatMap(([title, [, task]]) => connections.map((count) => row(title, count, task)));
}

/** Measures the blog, alone, in turns with another checkout, or with a bare Express. All reads come before the first write. */
export async function compareBlog(deps: Beside): Promise<Compared[]> {
  const { place, baseline, options, title } = deps;
  const ours = await openBlog(newPlace(place, 'ours'));
  const sides: Record<string, Side<Task>> = { [baseline ? 'candidate' : 'quillgate']: ours };
  if (baseline !== undefined) sides.baseline = await openBlog(newPlace(place, 'baseline'), baseline);
  if (options.peer === 'express') sides.express = await openExpress(ours, place);
  const rows = rowsOf(options);
  const isWrite = (row: Row<Task>) => /^(a new|changing)/.test(row.title);
  const reads = rows.filter((row) => !isWrite(row));
  const read = await compare(sides, reads, { ...deps, title: `${title}, reads` });
  return [read, await compare(sides, rows.filter(isWrite), { ...deps, title: `${title}, writes` })];
}

const expected = ['id', 'title', 'content', 'author', 'tags', 'slug', 'publishedAt', 'version'];

/** Starts an API of a checkout on a PostgreSQL full of posts; the queue lives there too, and has no jobs. */
async function openBlog(place: Place, checkout?: string): Promise<Side<Task> & { databaseUrl: string }> {
  const { url, pid } = await startDatabase(place);
  await migrate({ variables: { DATABASE_URL: url } }, place, checkout);
  place.lifecycle.stopping.throwIfAborted();
  const seeded = await seedPosts(url);
  const environment = {
    ...{ PATH: process.env.PATH, NODE_ENV: 'production', HOST: '127.0.0.1', PORT: '0', DATABASE_URL: url },
    // All readers of the benchmark come from one address.
    ...{ BLOG_READS_PER_SECOND: '0', BLOG_TOKEN: token },
  };
  const api = await startProgram({ name: 'api', args: ['api'], environment, checkout }, place);
  const failed = failureOf([api], place);
  await Promise.race([api.ready, failed]);
  const traffic = (task: Task) => ({ origin: `http://127.0.0.1:${api.port}`, expected, ...task(seeded) });
  return { pids: { api: api.pid, store: pid }, failed, traffic, databaseUrl: url };
}

/** Express and postgres.js with their defaults, on the posts of ours. */
async function openExpress(ours: Awaited<ReturnType<typeof openBlog>>, place: Place): Promise<Side<Task>> {
  const args = [fileURLToPath(new URL('./bare-express.ts', import.meta.url))];
  const environment = { PATH: process.env.PATH, NODE_ENV: 'production', DATABASE_URL: ours.databaseUrl };
  const program = { name: 'express', command: process.execPath, args, environment };
  const { pid, port, ...express } = await startProgram(program, place);
  const traffic = (task: Task) => ({ ...ours.traffic(task), origin: `http://127.0.0.1:${port}` });
  const failed = failureOf([{ ...express, pid, port }], place);
  return { pids: { peer: pid, store: ours.pids.store }, failed, traffic };
}
