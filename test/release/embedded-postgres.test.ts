import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { watch } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createDatabase, probeServer } from '../../dev/postgres/database.js';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../dev/postgres/embedded-postgres.js';
import { run, serverPid, serverProcesses } from './support/server-facts.js';
import { type StarterProcess, spawnStarter } from './support/starter-process.js';

let dataDir: string;
let started: { stop(): Promise<void> }[];

beforeEach(() => {
  // As root, other accounts cannot enter this folder: the usual case of these tests is the awkward one.
  dataDir = join(mkdtempSync(join(tmpdir(), 'quillgate ä-')), 'data');
  started = [];
});

afterEach(async () => {
  for (const server of started) await server.stop();
  expect(serverProcesses(dataDir)).toEqual([]);
  rmSync(join(dataDir, '..'), { recursive: true });
});

async function start(): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({ dataDir });
  started.push(server);
  return server;
}

async function kill(starter: StarterProcess): Promise<void> {
  starter.signal('SIGKILL');
  await starter.ended;
}

describe('the embedded PostgreSQL', () => {
  it('-> is a UTF-8 server with room for many connections, on loopback only, behind a password', async () => {
    const { url, adopted } = await start();
    expect(adopted).toBe(false);
    expect(url).toMatch(/^postgres:\/\/quillgate:[\w-]{32,}@127\.0\.0\.1:\d+\/quillgate$/);
    const [facts] = await run(
      url,
      `SELECT current_database() AS database, current_setting('server_encoding') AS encoding, datctype AS locale,
         current_setting('max_connections') AS connections, current_setting('listen_addresses') AS addresses,
         current_setting('unix_socket_directories') AS sockets, current_setting('fsync') AS fsync
       FROM pg_database WHERE datname = current_database()`,
    );
    expect(facts).toEqual({
      database: 'quillgate',
      encoding: 'UTF8',
      locale: 'C.UTF-8',
      connections: '300',
      addresses: '127.0.0.1',
      sockets: '',
      fsync: 'on',
    });
    const modes = ['postgres', 'postgres.log', 'postgres.password'].map(
      (name) => statSync(join(dataDir, name)).mode & 0o777,
    );
    expect(modes, 'kept from other users').toEqual([0o700, 0o600, 0o600]);
    const wrong = new URL(url);
    wrong.password = 'wrong';
    await expect(run(wrong.href, 'SELECT 1')).rejects.toThrow('password authentication failed');
  });

  it('that is slow to answer -> is waited for when a database is created', async () => {
    const server = await start();
    const pid = serverPid(dataDir);
    process.kill(pid, 'SIGSTOP');
    const creating = createDatabase(server.url, 'late');
    // Asked later, this gives up: the patience that it has would be over for the other as well.
    expect(await probeServer(server.url)).toBe('unreachable');
    process.kill(pid, 'SIGCONT');
    expect(await run(await creating, 'SELECT 1 AS n')).toEqual([{ n: 1 }]);
  });

  it.each([
    ['SIGKILL', 'process'],
    ['SIGINT', 'group'],
  ] as const)('of a starter that got %s as a %s -> is adopted, and can be stopped', async (signal, scope) => {
    const starter = spawnStarter(dataDir);
    const { url } = await starter.report;
    starter.signal(signal, scope);
    await starter.ended;
    const adopted = await start();
    expect(adopted).toMatchObject({ url, adopted: true });
    await adopted.stop();
    expect(serverProcesses(dataDir)).toEqual([]);
  });

  it('of two processes that start at the same time -> starts once', async () => {
    const starters = [spawnStarter(dataDir), spawnStarter(dataDir)];
    const [one, other] = await Promise.all(starters.map((starter) => starter.report));
    expect(one?.url).toBe(other?.url);
    expect([one?.adopted, other?.adopted].sort()).toEqual([false, true]);
    await Promise.all(starters.map((starter) => starter.stop()));
  });

  it('that was killed in the middle of work -> starts again at once', async () => {
    const killed = await start();
    await run(killed.url, 'CREATE TABLE kept AS SELECT 7 AS n');
    const busy = expect(
      run(killed.url, 'SELECT count(*) FROM generate_series(1, 5000000)'),
    ).rejects.toThrow();
    process.kill(serverPid(dataDir), 'SIGKILL');
    const next = await start();
    await busy;
    expect(next.adopted).toBe(false);
    expect(await run(next.url, 'SELECT n FROM kept')).toEqual([{ n: 7 }]);
  });

  it('that is a zombie of a starter that hangs -> starts again', async () => {
    const starter = spawnStarter(dataDir);
    await starter.report;
    starter.signal('SIGSTOP');
    process.kill(serverPid(dataDir), 'SIGKILL');
    expect((await start()).adopted).toBe(false);
    await kill(starter);
  });

  it('whose process id now belongs to another program -> starts', async () => {
    await (await start()).stop();
    const { uid, gid } = statSync(join(dataDir, 'postgres'));
    const stranger = spawn('cat', { ...(process.getuid?.() === 0 ? { uid, gid } : {}) });
    writeFileSync(
      join(dataDir, 'postgres', 'postmaster.pid'),
      `${stranger.pid}\n/x\n1\n5432\n\n\n1 1\nready\n`,
    );
    expect((await start()).adopted).toBe(false);
    stranger.kill();
    await once(stranger, 'close');
  });

  it('whose starter was killed in the middle of initdb -> starts afresh', async () => {
    const starter = spawnStarter(dataDir);
    await initdbBegins(join(dataDir, '..'), dataDir);
    await kill(starter);
    const server = await start();
    expect(server.adopted).toBe(false);
    expect(readdirSync(dataDir).filter((name) => name.startsWith('postgres.new-'))).toEqual([]);
  });

  it('that cannot use what it finds -> says why, and touches neither data nor password', async () => {
    const first = await start();
    await first.stop();
    await first.stop();
    const kept = join(dataDir, 'postgres.password');
    const password = readFileSync(kept, 'utf8');
    const refusal = () => expect(startEmbeddedPostgres({ dataDir })).rejects;
    writeFileSync(kept, 'another\n');
    await refusal().toThrow(/does not accept .*postgres\.password/);
    expect(serverProcesses(dataDir)).toEqual([]);
    rmSync(kept);
    await refusal().toThrow(/postgres\.password is missing.*DATABASE_URL/);
    writeFileSync(kept, password);
    rmSync(join(dataDir, 'postgres', 'PG_VERSION'));
    await refusal().toThrow('is not a PostgreSQL cluster');
    expect(readFileSync(kept, 'utf8')).toBe(password);
    expect(readdirSync(join(dataDir, 'postgres'))).toContain('base');
  });
});

async function initdbBegins(parent: string, folder: string): Promise<void> {
  for await (const { filename } of watch(parent, { recursive: true })) {
    if (filename?.startsWith(join(folder.slice(parent.length + 1), 'postgres.new-'))) return;
  }
}
