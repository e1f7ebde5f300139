import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { startSimulator } from '../../dev/simulator/server.js';
import { providerIds } from '../../shared/contracts/contract.js';
import { authorization, password, username } from '../support/deployment.js';
import { patience } from '../support/patience.js';
import { simulatorEnvironment } from '../support/simulator-environment.js';
import { freshStore, storeOf } from '../support/stores.js';

/** A line for every runner, with a name that is also a DNS label, which some want it to be. */
const lineOfAnyRunner = /^([a-z0-9]+(?:-[a-z0-9]+)*): (\S.*)$/;
const lines = readFileSync('Procfile', 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => lineOfAnyRunner.exec(line) ?? expect.fail(`not a line of a Procfile: ${line}`))
  .map(([, name = '', command = '']) => ({ name, command }));

const nf = resolve('node_modules/.bin/nf');

// As a checkout, but without the .env that it may have.
const folder = mkdtempSync(join(tmpdir(), 'quillgate-procfile-'));
for (const part of ['bin', 'Procfile']) symlinkSync(resolve(part), join(folder, part));
const simulator = await startSimulator({ port: 0 });
const environment = {
  PATH: process.env.PATH,
  HOST: '127.0.0.1',
  CHAT_USERNAME: username,
  CHAT_PASSWORD: password,
  ...(await freshStore(storeOf('postgres'))),
  ...simulatorEnvironment([...providerIds], simulator.url),
};
afterAll(async () => {
  await simulator.close();
  rmSync(folder, { recursive: true });
});

describe('the Procfile', () => {
  it('→ has a release, the web and a worker for each provider', () => {
    const workers = providerIds.map((id) => `worker-${id}`);
    expect(lines.map(({ name }) => name)).toEqual(['release', 'web', ...workers]);
  });

  it.each(lines.filter(({ name }) => name.startsWith('worker')))(
    '→ gives $name the port of its runner, and else leaves it its own',
    async ({ command }) => {
      const there = mkdtempSync(join(tmpdir(), 'quillgate-line-'));
      onTestFinished(() => rmSync(there, { recursive: true }));
      mkdirSync(join(there, 'bin'));
      writeFileSync(join(there, 'bin/quillgate'), '#!/bin/sh\necho "$WORKER_PORT"', { mode: 0o755 });
      const portOf = async (variables: Record<string, string>) => {
        const env = { PATH: process.env.PATH, WORKER_PORT: '4001', ...variables };
        return (await promisify(execFile)('sh', ['-c', command], { cwd: there, env })).stdout;
      };
      expect([await portOf({ PORT: '5000' }), await portOf({})]).toEqual(['5000\n', '4001\n']);
    },
  );

  it("is run by npm's foreman → answers, and the foreman stops what it has started", async () => {
    const [release, ...others] = lines;
    await promisify(execFile)('sh', ['-c', release?.command ?? ''], { cwd: folder, env: environment });
    const services = others.map(({ name }) => `${name}=1`);
    // Below the ports that the system hands out; every line's is a hundred above that of the line before it.
    const port = 20_000 + (process.pid % 100);
    const foreman = spawn(nf, ['start', '--port', `${port}`, services.join(',')], {
      cwd: folder,
      env: environment,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void foreman.kill('SIGINT'));
    let printed = '';
    foreman.stdout.on('data', (bytes) => {
      printed += bytes;
    });
    const closed = once(foreman, 'close');
    const ready = Promise.all(services.map((_, line) => untilReady(port + 100 * line)));
    await Promise.race([ready, closed.then(() => expect.unreachable(printed))]);
    for (const provider of providerIds)
      expect(await ask(port, provider)).toEqual({ status: 200, answeredBy: provider });
    foreman.kill('SIGINT');
    expect(await closed).toEqual([0, null]);
    expect(printed.match(/Exited Successfully/g)).toHaveLength(services.length);
  });
});

/** Asks the program at this port until it is ready. */
const untilReady = (port: number): Promise<void> =>
  vi.waitFor(async () => {
    expect((await fetch(`http://127.0.0.1:${port}/readyz`)).status).toBe(200);
  }, patience);

async function ask(port: number, provider: string) {
  const response = await fetch(`http://127.0.0.1:${port}/chat`, {
    method: 'POST',
    headers: { Authorization: authorization, 'Content-Type': 'application/json', 'X-LLM': provider },
    body: JSON.stringify({ messages: [{ content: 'Hello!' }] }),
  });
  await response.json();
  return { status: response.status, answeredBy: response.headers.get('x-llm-provider') };
}
