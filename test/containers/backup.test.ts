import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { StartedPostgreSqlContainer } from '@testcontainers/postgresql';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { migrate } from '../../cli/commands/migrate.js';
import { createToken, revokeToken } from '../../cli/commands/tokens.js';
import { addUser } from '../../cli/commands/users.js';
import journal from '../../db/migrations/meta/_journal.json' with { type: 'json' };
import { startChild } from '../../dev/child-program.js';
import { collectOutput, printedBy } from '../cli/output.js';
import { exportTree, importFrom } from '../cli/post-commands.js';
import { makeFolder, plant, plantTree } from '../support/folders.js';
import { patience, patienceMs } from '../support/patience.js';
import { createDatabase } from '../support/postgres-server.js';
import { composeImage, startPostgresContainer } from './support/store-images.js';

const folder = makeFolder(afterAll);
let server: StartedPostgreSqlContainer;

beforeAll(async () => {
  server = await startPostgresContainer(composeImage('postgres'));
});
afterAll(() => server?.stop());

/** URL of a new and empty database. */
const emptyDatabase = (): Promise<string> => createDatabase(server.getConnectionUri());

/** A command as an operator reads it: the line of the page that begins with it. */
function documented(command: string): string {
  const page = readFileSync('docs/deploying.md', 'utf8');
  const line = page.split('\n').find((one) => one.startsWith(`    ${command} `));
  if (line === undefined) throw new Error(`docs/deploying.md has no command ${command}`);
  return line.trim();
}

/** The output of a command, as JSON. */
const printed = async (command: () => Promise<void>): Promise<Record<string, string>> =>
  JSON.parse((await printedBy(command)).stdout);

/** Fills a database, and gives a token and a user's credentials as they were shown once. */
async function fill(url: string): Promise<{ token: string; credentials: string }> {
  const environment = { DATABASE_URL: url };
  collectOutput();
  await migrate(environment);
  await importFrom(environment, plant(posts));
  const { secret } = await printed(() => addUser(environment, 'ada', { json: true }));
  const options = { expires: '90d', json: true, owner: 'ada', scope: ['blogs:read'] };
  const { token = '' } = await printed(() => createToken(environment, options));
  const { id = '' } = await printed(() => createToken(environment, options));
  await revokeToken(environment, id);
  await run(url, `update posts set slug = 'another' where status = 'published'`);
  await run(url, `insert into pool_setting values ('openai', 1, '{"concurrency":3}', now(), 'ada')`);
  await run(
    url,
    `insert into session select '\\x01', id, name, now(), now() + interval '12 hours' from users`,
  );
  return { token, credentials: Buffer.from(`ada:${secret}`).toString('base64') };
}

const posts = {
  'first.md': '---\ntitle: A durable queue\ntags: [b, a]\n---\r\ntext \u0001 😀\n',
  'deep/draft.md': '---\nstatus: draft\nlayout: kept\n---\nno title, and no final newline',
};

async function run(url: string, statement: string): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return client.query(statement).finally(() => client.end());
}

/** Every row of every table that belongs in a backup, as PostgreSQL writes it. */
async function readRows(url: string): Promise<Record<string, string[]>> {
  const rows: Record<string, string[]> = {};
  for (const table of [
    'posts',
    'post_sources',
    'old_slugs',
    'users',
    'tokens',
    'audit',
    'pool_setting',
    'session',
    'quillgate_migrations',
  ]) {
    const found = await run(url, `select it::text as row from ${table} it order by 1`);
    rows[table] = found.rows.map(({ row }) => row);
  }
  return rows;
}

/** The API's answers, byte for byte, to the credentials that were made before the backup. */
async function readApi(
  databaseUrl: string,
  { token, credentials }: { token: string; credentials: string },
): Promise<string[]> {
  const api = await startChild({
    name: 'api',
    command: resolve('bin/quillgate'),
    args: ['api'],
    environment: {
      PATH: process.env.PATH,
      DATABASE_URL: databaseUrl,
      HOST: '127.0.0.1',
      PORT: '0',
      BLOG_READS: 'token',
    },
    cwd: folder,
    logFile: join(folder, 'api.log'),
  });
  try {
    await api.ready;
    const url = `http://127.0.0.1:${api.port}`;
    const headers = { Authorization: `Bearer ${token}` };
    const paths = ['/blogs', '/blogs?q=queues', '/feed.json', '/feed.xml'];
    // A database that is slow to connect to is 503 at first, as readers know.
    const read = async (path: string) => {
      const answer = await fetch(url + path, { headers });
      expect(answer.status).toBe(200);
      return answer.text();
    };
    const answers = await Promise.all(paths.map((path) => vi.waitFor(() => read(path), patience)));
    const asked = { method: 'POST', headers: { Authorization: `Basic ${credentials}`, 'X-LLM': 'openai' } };
    // A known caller without a body gets that answer.
    expect((await fetch(`${url}/chat`, asked)).status).toBe(415);
    return answers;
  } finally {
    await api.stop({ graceMs: patienceMs });
  }
}

/** Runs a line of the page in the server's container, which has its clients. Throws what a failing line has printed. */
async function runBeside(line: string, databaseUrl: string): Promise<void> {
  const url = new URL(databaseUrl);
  url.host = '127.0.0.1:5432';
  const env = { DATABASE_URL: url.href };
  const { exitCode, output } = await server.exec(['sh', '-c', line], { workingDir: '/tmp', env });
  if (exitCode !== 0) throw new Error(output);
}

describe('a backup', () => {
  it('is restored into an empty server → posts, users, tokens and feeds are the same, byte for byte', async () => {
    const [original, another] = await Promise.all([emptyDatabase(), emptyDatabase()]);
    const credentials = await fill(original);
    await runBeside(documented('pg_dump'), original);
    await runBeside(documented('pg_restore'), another);
    const before = await readRows(original);
    const counts = [2, 2, 1, 1, 2, 4, 1, 1, journal.entries.length];
    expect(Object.values(before).map((rows) => rows.length)).toEqual(counts);
    expect(await readRows(another)).toEqual(before);

    // It does not hold the queue.
    await migrate({ DATABASE_URL: another });
    const answers = await Promise.all([original, another].map((url) => readApi(url, credentials)));
    expect(answers[1]).toEqual(answers[0]);
    const exported = await exportTree({ DATABASE_URL: original });
    expect(await exportTree({ DATABASE_URL: another })).toEqual(exported);
  });
});

describe('the posts alone', () => {
  it('are exported and imported → they have their ids and times again', async () => {
    const [from, to] = await Promise.all([emptyDatabase(), emptyDatabase()]);
    await fill(from);
    await migrate({ DATABASE_URL: to });
    const exported = await exportTree({ DATABASE_URL: from });
    expect(Object.keys(exported)).toHaveLength(2);
    await importFrom({ DATABASE_URL: to }, plantTree(exported));
    expect(await exportTree({ DATABASE_URL: to })).toEqual(exported);
  });
});
