import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it, type TestContext } from 'vitest';
import { type Simulator, startSimulator } from '../../dev/simulator/server.js';
import type { StartProcess } from './support/npm-start.js';
import { programPid } from './support/processes.js';
import { serverPid } from './support/server-facts.js';
import { openPlace, type Place } from './support/start-place.js';

interface Running {
  place: Place;
  start: StartProcess;
  provider: Simulator;
  /** Asks a model; the request's headers may be added to. */
  ask(model: string, headers?: Record<string, string>): Promise<Response>;
}

/** `npm start` with the embedded PostgreSQL, and a provider here whose calls can be seen and held. */
async function openRunning(test: TestContext): Promise<Running> {
  const provider = await startSimulator({ port: 0 });
  test.onTestFinished(() => provider.close());
  const place = await openPlace(test);
  const start = place.start({ SIMULATOR_URL: provider.url });
  await start.up;
  const login = readFileSync(join(place.dataDir, 'chat-credentials'), 'utf8').trim();
  const ask = (model: string, headers: Record<string, string> = {}) =>
    fetch(`http://localhost:${place.environment.PORT}/chat`, {
      method: 'POST',
      headers: {
        Authorization: `Basic ${Buffer.from(login).toString('base64')}`,
        'Content-Type': 'application/json',
        'X-LLM': 'openai',
        'X-LLM-Model': model,
        ...headers,
      },
      body: JSON.stringify({ messages: [{ role: 'user', content: 'Hello!' }] }),
    });
  return { place, start, provider, ask };
}

/** The lines of the tour that find the worker with the chat, and kill it. */
function tourKills(): string {
  const [, lines] =
    /^ {4}(until worker=.+\n {4}kill -9 .+)$/m.exec(readFileSync('docs/start.md', 'utf8')) ?? [];
  if (lines === undefined) throw new Error('the tour kills no worker');
  return lines.replaceAll('bin/quillgate', resolve('bin/quillgate'));
}

const callOf =
  (model: string, after = 0) =>
  (call: { id: number; model?: string | undefined }) =>
    call.model === model && call.id > after;

describe('npm start', () => {
  it.for([
    ['a whole chat', 'application/json', 'sim-gate-0@whole'],
    ['a stream before its first delta', 'text/event-stream', 'sim-gate-0@stream'],
  ] as const)(
    'with %s whose worker is killed as the tour does it -> another worker answers',
    async ([, Accept, model], test) => {
      const { place, start, provider, ask } = await openRunning(test);
      const asked = ask(model, { Accept });
      const first = await provider.calls.waitFor(callOf(model));
      await promisify(execFile)('sh', ['-c', tourKills()], {
        cwd: place.dir,
        env: { PATH: process.env.PATH },
      });
      await provider.calls.waitFor(callOf(model, first.id));
      provider.open(model);
      const response = await asked;
      expect(response.status).toBe(200);
      expect(await response.text()).toContain('"response":"1"');
      await start.says(' runs again.\n');
    },
  );

  it('whose API is killed amid a chat with a key -> answers the same key with the first call', async (test) => {
    const { start, provider, ask } = await openRunning(test);
    const model = 'sim-gate-0@key';
    const key = { 'Idempotency-Key': 'order-42' };
    const cut = expect(ask(model, key)).rejects.toThrow('fetch failed');
    await provider.calls.waitFor(callOf(model));
    process.kill(programPid(start, 'api'), 'SIGKILL');
    await cut;
    await start.says('api runs again.\n');
    const asked = ask(model, key);
    provider.open(model);
    const response = await asked;
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ response: '1' });
    expect(provider.calls.list({ model })).toHaveLength(1);
  });

  it('whose PostgreSQL is killed amid chats -> answers or says so, and goes on at its port with its data', async (test) => {
    const { place, start, provider, ask } = await openRunning(test);
    const kept = { 'Idempotency-Key': 'order-43' };
    expect((await ask('sim-echo', kept)).status).toBe(200);
    const model = 'sim-gate-0@postgres';
    const running = ask(model);
    await provider.calls.waitFor(callOf(model));
    const address = () =>
      readFileSync(join(place.dataDir, 'postgres', 'postmaster.pid'), 'utf8').split('\n')[3];
    const [server, port] = [serverPid(place.dataDir), address()];
    process.kill(server, 'SIGKILL');
    const meanwhile = await ask('sim-echo@meanwhile');
    const ending = (await meanwhile.json()) as { response?: string; code?: string };
    expect(ending.response === undefined ? ending.code : 'answered').toMatch(
      /^(answered|queue_unavailable)$/,
    );
    await start.says('PostgreSQL runs again.\n');
    expect(serverPid(place.dataDir)).not.toBe(server);
    expect(address()).toBe(port);
    provider.open(model);
    expect((await running).status).toBe(200);
    expect((await ask('sim-echo', kept)).status).toBe(200);
    expect(provider.calls.list({ model: 'sim-echo' })).toHaveLength(1);
    expect((await ask('sim-echo@after')).status).toBe(200);
  });

  it('whose parts are all killed at once -> runs again, and answers the key of the chat that was cut', async (test) => {
    const { place, start, provider, ask } = await openRunning(test);
    const model = 'sim-gate-0@all';
    const key = { 'Idempotency-Key': 'order-44' };
    const cut = expect(ask(model, key)).rejects.toThrow('fetch failed');
    await provider.calls.waitFor(callOf(model));
    const programs = start.family().filter(({ command }) => command.includes('/dist/programs/'));
    const parts = programs.map(({ pid }) => pid).filter((pid) => pid !== start.pid);
    expect(parts).toHaveLength(3);
    for (const pid of [...parts, serverPid(place.dataDir)]) process.kill(pid, 'SIGKILL');
    await cut;
    for (const name of ['api', 'worker', 'worker-2', 'PostgreSQL']) await start.says(`${name} runs again.\n`);
    provider.open(model);
    const response = await ask(model, key);
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ response: '1' });
  });
});
