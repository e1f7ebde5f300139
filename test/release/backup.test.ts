import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { GenericContainer, getContainerRuntimeClient, ImageName } from 'testcontainers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { migrate } from '../../cli/commands/migrate.js';
import { createToken, revokeToken } from '../../cli/commands/tokens.js';
import { addUser } from '../../cli/commands/users.js';
import journal from '../../db/migrations/meta/_journal.json' with { type: 'json' };
import { startChild } from '../../dev/child-program.js';
import { collectOutput, printedBy } from '../cli/output.js';
import { exportTree, importFrom } from '../cli/post-commands.js';
import { startEmptyDatabase, type TestDatabase } from '../support/database.js';
import { makeFolder, plant, plantTree } from '../support/folders.js';
import { patienceMs } from '../support/patience.js';
import { freshStore } from '../support/stores.js';

const image = 'postgres:18-alpine';
const majorVersion = 18;
const execute = promisify(execFile);
const clients = await findPostgresClients();

const folder = makeFolder(afterAll);
let original: TestDatabase;
let another: TestDatabase;

beforeAll(async () => {
  [original, another] = await Promise.all([startEmptyDatabase(), startEmptyDatabase()]);
});
afterAll(() => Promise.all([original?.stop(), another?.stop()]));

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
    const answers = await Promise.all(paths.map((path) => fetch(url + path, { headers })));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    const asked = { method: 'POST', headers: { Authorization: `Basic ${credentials}`, 'X-LLM': 'openai' } };
    // A known caller without a body gets that answer.
    expect((await fetch(`${url}/chat`, asked)).status).toBe(415);
    return await Promise.all(answers.map((answer) => answer.text()));
  } finally {
    await api.stop({ graceMs: patienceMs });
  }
}

describe('a backup', () => {
  if (clients.missing !== undefined) return it.skip(`(did not run: ${clients.missing})`);
  const { open } = clients;

  it('is restored into an empty server → posts, users, tokens and feeds are the same, byte for byte', async () => {
    const credentials = await fill(original.url);
    const tools = await open(folder);
    try {
      await tools.run(documented('pg_dump'), { DATABASE_URL: original.url });
      await tools.run(documented('pg_restore'), { DATABASE_URL: another.url });
    } finally {
      await tools.close();
    }
    const before = await readRows(original.url);
    const counts = [2, 2, 1, 1, 2, 4, 1, 1, journal.entries.length];
    expect(Object.values(before).map((rows) => rows.length)).toEqual(counts);
    expect(await readRows(another.url)).toEqual(before);

    // It does not hold the queue.
    await migrate({ DATABASE_URL: another.url });
    const answers = await Promise.all([original, another].map(({ url }) => readApi(url, credentials)));
    expect(answers[1]).toEqual(answers[0]);
    const [exported, again] = [
      await exportTree({ DATABASE_URL: original.url }),
      await exportTree({ DATABASE_URL: another.url }),
    ];
    expect(again).toEqual(exported);
  });
});

describe('the posts alone', () => {
  it('are exported and imported → they have their ids and times again', async () => {
    const server = { kind: 'postgres', url: original.url, databaseUrl: original.url } as const;
    const [from, to] = await Promise.all([freshStore(server), freshStore(server)]);
    await fill(from.DATABASE_URL ?? '');
    await migrate(to);
    const exported = await exportTree(from);
    expect(Object.keys(exported)).toHaveLength(2);
    await importFrom(to, plantTree(exported));
    expect(await exportTree(to)).toEqual(exported);
  });
});

/** PostgreSQL's own programs (`pg_dump`, `pg_restore`) of the version of the tests' servers, or a newer one. */
interface PostgresClients {
  /** Runs a shell command in the folder they were opened for; rejects with its output when it fails. */
  run(line: string, variables: Record<string, string>): Promise<void>;
  close(): Promise<void>;
}

/** Where the clients come from, or why there are none: npm's package has only the server. */
type PostgresClientsChoice =
  | { readonly open: (folder: string) => Promise<PostgresClients>; readonly missing?: undefined }
  | { readonly open?: undefined; readonly missing: string };

/** The clients on the PATH if they are new enough, else those of a container. */
async function findPostgresClients(): Promise<PostgresClientsChoice> {
  if (await isOnPath()) return { open: async (folder) => onPath(folder) };
  if (await isInDocker()) return { open: inContainer };
  return { missing: `no pg_dump ${majorVersion} on the PATH, and no Docker engine that can run ${image}` };
}

async function isOnPath(): Promise<boolean> {
  const { stdout } = await execute('pg_dump', ['--version']).catch(() => ({ stdout: '' }));
  return Number(/ (\d+)\./.exec(stdout)?.[1] ?? 0) >= majorVersion;
}

async function isInDocker(): Promise<boolean> {
  try {
    const client = await getContainerRuntimeClient();
    return await client.image.exists(ImageName.fromString(image));
  } catch {
    return false;
  }
}

const onPath = (cwd: string): PostgresClients => ({
  run: async (line, variables) => {
    await execute('sh', ['-c', line], { cwd, env: { PATH: process.env.PATH, ...variables } });
  },
  close: async () => undefined,
});

/** On the host's network, because the tests' servers listen only on the loopback address. */
async function inContainer(folder: string): Promise<PostgresClients> {
  process.env.TESTCONTAINERS_RYUK_DISABLED ??= 'true';
  const container = await new GenericContainer(image)
    .withLabels({ quillgate: 'test' })
    .withNetworkMode('host')
    .withBindMounts([{ source: folder, target: '/backup' }])
    .withEntrypoint(['sleep', '300'])
    .start();
  return {
    run: async (line, env) => {
      const { exitCode, output } = await container.exec(['sh', '-c', line], { workingDir: '/backup', env });
      if (exitCode !== 0) throw new Error(output);
    },
    close: async () => void (await container.stop()),
  };
}
