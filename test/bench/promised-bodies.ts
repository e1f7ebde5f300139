import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { request } from 'node:http';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { paced, times, until } from './caller.js';
import { chatBody, chatHeaders, openGateway } from './gateway.js';
import { launcherOf, type Place, runToEnd, startProgram, thisCheckout } from './programs.js';
import { type Figure, figure, percentile } from './report.js';
import type { StoreName } from './stores.js';

const probe = join(thisCheckout, 'test', 'support', 'loop-probe.mjs');

/** Sends bodies of 31.5 MiB of one text to the URL of its environment, one after the other, until it is ended. */
const sender = `
const { URL: url, HEADERS: headers } = process.env;
const body = JSON.stringify({ messages: [{ content: 'x'.repeat(31.5 * 1048576) }] });
for (;;) {
  const response = await fetch(url, { method: 'POST', headers: JSON.parse(headers), body });
  console.log(response.status);
  await response.arrayBuffer();
}`;

/** What two large bodies of one user at a time do to the chats of another user, and to the loop of the API. */
export async function largeBodies(store: StoreName, place: Place): Promise<Figure[]> {
  const path = { PATH: process.env.PATH };
  // Not in this process, which a large call would hold up while this measures; nor one for both users: it holds up its
  // simulator as well, for half a second, which is no part of what is measured.
  const [simulator, others] = [await openSimulator('simulator', place), await openSimulator('others', place)];
  const socketPath = join(place.dir, 'probe');
  const gateway = await openGateway(
    store,
    {
      simulatorUrl: simulator,
      workers: 2,
      settings: { MAX_BODY_BYTES: '33554432', ANTHROPIC_BASE_URL: others },
      apiSettings: { NODE_OPTIONS: `--import ${probe}`, PROBE_SOCKET: socketPath },
    },
    place,
  );
  const environment = { ...path, ADMIN_USERNAME: 'operator', ...gateway.store.variables };
  const add = [launcherOf(thisCheckout), 'users', 'add', 'other'];
  const secret = (await runToEnd(add, place, environment)).trim();
  const authorization = `Basic ${Buffer.from(`other:${secret}`).toString('base64')}`;
  const headers = { ...chatHeaders, Authorization: authorization, 'X-LLM': 'anthropic' };
  const url = `${gateway.url}/chat`;
  const ask = async () => {
    const startedAt = performance.now();
    const response = await fetch(url, { method: 'POST', headers, body: chatBody });
    await response.arrayBuffer();
    return { status: response.status, tookMs: performance.now() - startedAt };
  };
  await until(async () => (await ask()).status === 200, 300);
  const statuses: string[] = [];
  const senders = times(2, () => {
    const own = { ...path, URL: url, HEADERS: JSON.stringify({ ...chatHeaders, 'X-LLM-Model': 'sim-echo' }) };
    const args = ['--input-type=module', '-e', sender];
    const child = spawn(process.execPath, args, { env: own, stdio: ['ignore', 'pipe', 'ignore'] });
    child.stdout.on('data', (said) => statuses.push(...String(said).trim().split('\n')));
    return child;
  });
  place.lifecycle.opened('senders', senders, () => void senders.map((child) => child.kill('SIGKILL')));
  await until(() => statuses.length > 1);
  await longestTurn(socketPath);
  const asked = await paced(200, 100, ask);
  const stallMs = await longestTurn(socketPath);
  for (const child of senders) child.kill('SIGKILL');
  await delay(100);
  const failed = [...statuses, ...asked.map(({ status }) => String(status))].filter((one) => one !== '200');
  return [
    figure(
      `Beside two bodies of 31.5 MiB (${statuses.length} in all), another user's p95`,
      percentile(
        asked.map(({ tookMs }) => tookMs),
        0.95,
      ),
      ['≤', 500],
    ),
    figure('Beside them, the longest turn of the API', stallMs, ['≤', 100]),
    figure('Beside them, chats of both that fail', failed.length, ['≤', 0], ''),
  ];
}

/** Gives its URL. */
async function openSimulator(name: string, place: Place): Promise<string> {
  const environment = { PATH: process.env.PATH };
  const { port } = await startProgram({ name, args: ['simulator', '--port', '0'], environment }, place);
  return `http://127.0.0.1:${port}`;
}

/** Of the API's loop since this was last asked, in milliseconds of processor time. */
async function longestTurn(socketPath: string): Promise<number> {
  const [answer] = await once(request({ socketPath }).end(), 'response');
  return ((await json(answer)) as { stallMs: number }).stallMs;
}
