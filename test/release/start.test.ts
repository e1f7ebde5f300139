import { execFile } from 'node:child_process';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { watch } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it, vi } from 'vitest';
import { startSimulator } from '../../dev/simulator/server.js';
import { credentialVariables } from '../../shared/config/provider-credentials.js';
import { providerIds } from '../../shared/contracts/contract.js';
import { freshStore, storeOf } from '../support/stores.js';
import type { StartProcess } from './support/npm-start.js';
import { programPid, stillRunning } from './support/processes.js';
import { run, serverPid, serverProcesses } from './support/server-facts.js';
import { gone, openPlace } from './support/start-place.js';

/** The output of a first start before its banner, in a folder that has its data beside it. */
const stages = [
  'Preparing PostgreSQL, with its data in .data/\n',
  'Bringing the database up to date\n',
  'Starting the API, two workers and the simulator\n',
];
const stopping = 'Stopping; requests in flight have up to 30 s\n';
const stopped = 'Stopped; the data is in .data/. The next start continues with it.\n';
const startToStop = [...stages, stopping, stopped].join('');

const whenThere = { timeout: 60_000, interval: 20 };

const ownDatabase = (dataDir: string): string => {
  const password = readFileSync(join(dataDir, 'postgres.password'), 'utf8').trim();
  const port = readFileSync(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8').split('\n')[3];
  return `postgres://quillgate:${password}@127.0.0.1:${port}/quillgate`;
};

const curlLines = (banner: string, to: 'chat' | 'blogs'): string[] =>
  banner.split('\n').filter((line) => line.startsWith('  curl ') && line.endsWith(`/${to}`));

async function shell(command: string, env: Record<string, string> = {}): Promise<unknown> {
  // Behind everything else: a machine with nothing but Node and npm has no curl.
  const PATH = `${process.env.PATH}:${resolve('test/support/instead-of-curl')}`;
  const options = { env: { PATH, ...env } };
  const { stdout } = await promisify(execFile)('sh', ['-c', command], options);
  return JSON.parse(stdout);
}

/** Resolves when the folder has a new entry whose name begins so. */
async function appears(folder: string, name: string): Promise<void> {
  for await (const { filename } of watch(folder)) if (filename?.startsWith(name)) return;
}

/** A signal to the whole group ends it in order after these stages, and everything it has started. */
async function stopsCleanly(
  starting: StartProcess,
  { signal, after }: { signal: NodeJS.Signals; after: string[] },
): Promise<void> {
  const family = starting.family();
  starting.signal(signal, 'group');
  const stderr = [...after, 'Stopping\n', stopped].join('');
  expect(await starting.ended).toEqual({ code: 0, signal: null, stdout: '', stderr });
  await gone(family);
}

async function signIn(console: string, [name, secret]: string[]): Promise<unknown> {
  const response = await fetch(`${console}/session`, {
    method: 'POST',
    headers: { 'Sec-Fetch-Site': 'same-origin', 'Content-Type': 'application/json' },
    body: JSON.stringify({ name, secret }),
  });
  return response.json();
}

/** Expects a line for each provider that says what makes it real. */
function expectSimulated(banner: string): void {
  for (const id of providerIds) {
    const line = banner.split('\n').find((text) => text.includes(`  ${id} `));
    expect(line).toMatch(new RegExp(`^ +${id} +simulated; to make it real set `));
    expect(line).toContain(credentialVariables[id]);
  }
}

describe('npm start', () => {
  it('-> explains itself, keeps credentials and data, and leaves nothing running, also as npm', async (test) => {
    const place = await openPlace(test);
    const { PORT, SIMULATOR_PORT } = place.environment;
    const first = place.start({}, ['--verbose']);
    const banner = await first.up;
    for (const address of [
      `localhost:${PORT}/chat\n`,
      `localhost:${PORT}/v1/chat\n`,
      `127.0.0.1:${SIMULATOR_PORT}`,
    ])
      expect(banner).toContain(` http://${address}`);
    expectSimulated(banner);
    const simulated = Object.fromEntries(providerIds.map((id) => [id, 'simulated']));
    const front = await (await fetch(`http://localhost:${PORT}/`)).json();
    expect(front).toMatchObject({ providers: simulated });
    expect(statSync(join(place.dataDir, 'logs')).mode & 0o777).toBe(0o700);
    const kept = () =>
      ['chat-credentials', 'admin-credentials', 'blog-token', 'chat-token'].map((name) =>
        readFileSync(join(place.dataDir, name), 'utf8').trim(),
      );
    const made = kept();
    const [chat, admin, blogToken, chatToken] = made.map((line) => line.split(':'));
    expect(new Set([chat?.[1], admin?.[1], blogToken?.[0], chatToken?.[0]]).size).toBe(4);
    expect(banner).toMatch(new RegExp(`Chat +\\S+\n +Name +${chat?.[0]}\n +Password +${chat?.[1]} `));
    expect(banner).toMatch(new RegExp(`Console +\\S+\n +Name +${admin?.[0]}\n +Password +${admin?.[1]} `));
    const [, console = ''] = /Console +(http:\S+)\n/.exec(banner) ?? [];
    expect(await signIn(console, admin ?? [])).toMatchObject({ user: { name: 'admin' } });
    for (const words of [
      `Blog token ${blogToken} `,
      `Chat token ${chatToken} `,
      `\n  OPENAI_BASE_URL=http://localhost:${PORT}/v1\n  OPENAI_API_KEY=${chatToken}\n`,
    ])
      expect(banner).toContain(words);
    const curls = curlLines(banner, 'chat');
    expect(curls).toHaveLength(providerIds.length);
    for (const [index, id] of providerIds.entries()) {
      expect(await shell(curls[index] ?? '')).toEqual({ response: expect.stringContaining(`Hello, ${id}!`) });
    }
    const [write, read] = curlLines(banner, 'blogs');
    const post = await shell(write ?? '');
    expect(post).toMatchObject({ title: 'Hello', author: 'demo' });
    expect(await shell(read ?? '')).toEqual([post]);
    const { stderr } = await promisify(execFile)(resolve('bin/quillgate'), ['tokens', 'list'], {
      cwd: place.dir,
      env: { PATH: process.env.PATH },
    });
    expect(stderr).toBe('There are no access tokens.\n');
    await run(ownDatabase(place.dataDir), 'CREATE TABLE kept AS SELECT 7 AS n');
    const family = first.family();
    expect(family.length).toBeGreaterThan(5);
    first.signal('SIGINT');
    expect(await first.ended).toEqual({ code: 0, signal: null, stdout: banner, stderr: startToStop });
    expect(stillRunning(family)).toEqual([]);

    for (const [signal, scope] of [
      ['SIGTERM', 'process'],
      ['SIGINT', 'group'],
    ] as const) {
      const npm = place.startWithNpm();
      const short = await npm.up;
      const asFirst = short.replaceAll(`${place.dataDir}/`, '.data/');
      expect(asFirst).toContain(banner.slice(0, banner.indexOf('\n  Chat too ')));
      expect(curlLines(short, 'chat')).toEqual(curls.slice(0, 1));
      expect(kept()).toEqual(made);
      expect(await shell(read ?? '')).toEqual([post]);
      expect(await run(ownDatabase(place.dataDir), 'SELECT n FROM kept')).toEqual([{ n: 7 }]);
      const all = npm.family();
      npm.signal(signal, scope);
      const stderr = expect.stringContaining(`${stopping}Stopped; the data is in ${place.dataDir}/. `);
      expect(await npm.ended).toMatchObject({ code: 0, stderr });
      expect(stillRunning(all)).toEqual([]);
    }
  });

  it('that was killed -> starts again at once with its PostgreSQL, and stops when a part of it dies too often', async (test) => {
    const place = await openPlace(test);
    const killed = place.start();
    await killed.up;
    const programs = killed.family().filter(({ command }) => command.includes('/dist/programs/'));
    const server = serverPid(place.dataDir);
    killed.signal('SIGKILL');
    const adopting = place.start();
    await adopting.up;
    await gone(programs);
    expect(programs).toHaveLength(5);
    expect(serverPid(place.dataDir)).toBe(server);
    process.kill(server, 'SIGKILL');
    await adopting.says('PostgreSQL ended unexpectedly; its log is .data/postgres.log. Starting it again.\n');
    await adopting.says('PostgreSQL runs again.\n');
    const death = 'api ended unexpectedly (SIGKILL); its log is .data/logs/api.log.';
    const family = adopting.family();
    for (let killed = 0, deaths = 0; deaths < 4; deaths += 1) {
      // As soon as it is there, so that four deaths are far from taking a minute.
      killed = await vi.waitFor(() => programPid(adopting, 'api', { after: killed }), whenThere);
      process.kill(killed, 'SIGKILL');
    }
    const { code, stderr } = await adopting.ended;
    expect(code).toBe(1);
    const end = `${death} It was started again three times in the minute before.\n${stopping}${stopped}`;
    expect(stderr.slice(stderr.indexOf(death))).toBe(`${death} Starting it again.\n`.repeat(3) + end);
    await gone(family);
    expect(serverProcesses(place.dataDir)).toEqual([]);
  });

  it('that gets a signal in the middle of a start -> stops in order', async (test) => {
    const place = await openPlace(test);
    const makesItsCluster = appears(place.dataDir, 'postgres.new-');
    const first = place.start();
    await makesItsCluster;
    await stopsCleanly(first, { signal: 'SIGINT', after: stages.slice(0, 1) });
    const startsItsPrograms = appears(join(place.dataDir, 'logs'), 'worker.log');
    const second = place.start();
    await startsItsPrograms;
    await stopsCleanly(second, { signal: 'SIGHUP', after: stages });
  });

  it('twice in a folder -> runs once, and stops in order when its terminal is closed', async (test) => {
    const place = await openPlace(test);
    const both = [place.start({ PROT: '1' }), place.start({ PROT: '1' })];
    const refused = await Promise.race(both.map(async (one) => ({ one, ending: await one.ended })));
    expect(refused.ending).toMatchObject({ code: 1, stdout: '' });
    expect(refused.ending.stderr).toMatch(
      /^Unknown variable PROT is ignored\. Did you mean PORT\?\nConfiguration problems:\n {2}DATA_DIR: .+\n$/,
    );
    const other = both.find((one) => one !== refused.one);
    await other?.up;
    const family = other?.family() ?? [];
    expect(family).not.toEqual([]);
    other?.hangUp();
    other?.signal('SIGHUP');
    expect(await other?.ended).toMatchObject({ code: 0, signal: null });
    expect(stillRunning(family)).toEqual([]);
  });

  it('whose database cannot be reached -> says so by the name of the variable alone', async (test) => {
    const place = await openPlace(test);
    const DATABASE_URL = 'postgres://someone:hunter2@127.0.0.1:1/x';
    const { code, stdout, stderr } = await place.start({ DATABASE_URL }).ended;
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(
      /^Bringing the database up to date\nConfiguration problems:\n {2}DATABASE_URL: .+\n$/,
    );
    expect(stderr).not.toContain('hunter2');
  });

  it('with stores, a provider and a user of its owner -> uses them, and ports that it finds itself', async (test) => {
    const place = await openPlace(test);
    const provider = await startSimulator({ port: 0 });
    test.onTestFinished(() => provider.close());
    const { DATABASE_URL = '', REDIS_URL = '' } = await freshStore(storeOf('redis'));
    writeFileSync(
      join(place.dir, '.env'),
      [
        '# from a friend on Windows',
        `DATABASE_URL="${DATABASE_URL}"`,
        "OPENAI_API_KEY='a-key#with-a-hash'",
        `  OPENAI_BASE_URL = ${provider.url}/v1  `,
        'export OPENAI_MODEL=sim-echo # the default',
        'ANTHROPIC_API_KEY=',
        'AWS_PROFILE=nobody-has-this',
        'AWS_BEARER_TOKEN_BEDROCK=unused',
        'GOOGLE_CLOUD_LOCATION=only-half',
        '',
      ].join('\r\n'),
    );
    const ports = { PORT: '0', WORKER_PORT: '0', SIMULATOR_PORT: '0' };
    const user = { CHAT_USERNAME: 'ada', CHAT_PASSWORD: 'not a secret in a test' };
    const started = place.start({ ...ports, ...user, REDIS_URL }, ['--verbose']);
    const banner = await started.up;
    expect(banner).toMatch(/^ +openai +real$/m);
    for (const id of ['anthropic', 'bedrock', 'vertexai'])
      expect(banner).toMatch(new RegExp(`^ +${id} +simulated;`, 'm'));
    expect(banner).toContain('PostgreSQL (DATABASE_URL)');
    expect(banner).not.toContain(user.CHAT_PASSWORD);
    const answers = await Promise.all(curlLines(banner, 'chat').map((line) => shell(line, user)));
    expect(answers).toEqual(
      providerIds.map((id) => ({ response: expect.stringContaining(`Hello, ${id}!`) })),
    );
    expect(provider.calls.list().map(({ facts }) => facts.provider)).toEqual(['openai']);
    expect(existsSync(join(place.dataDir, 'postgres'))).toBe(false);
    expect(banner).toContain('Redis (REDIS_URL)');
    const addresses = banner.match(/http:\S+\/readyz/g) ?? [];
    expect(addresses).toHaveLength(3);
    for (const address of addresses)
      expect(await (await fetch(address)).json()).toMatchObject({ checks: { queue: { store: 'redis' } } });
  });
});
