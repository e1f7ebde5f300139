import { afterAll, expect, it, vi } from 'vitest';
import { behaviourList, findBehaviour, partList } from '../../../dev/simulator/model-names.js';
import { startSimulator } from '../../../dev/simulator/server.js';
import { providerIds } from '../../../shared/contracts/contract.js';
import { city, requestOf, send } from './requests.js';

const simulator = await startSimulator({ port: 0 });
afterAll(() => simulator.close());

async function ask(model: string, stream = false) {
  const response = await send(simulator.url, requestOf('openai', { model, stream }));
  return { status: response.status, headers: response.headers, text: await response.text() };
}

it('a model that is listed -> is known, also with a mark', () => {
  const values: Record<string, string> = {
    ...{ status: '503', key: 'a.b-c', n: '2', ms: '30', seconds: '4', length: '9', word: 'OTHER' },
  };
  for (const { model } of behaviourList) {
    const name = model.replace(/<(\w+)>/g, (_, word: string) => values[word] ?? '');
    expect(findBehaviour(name), name).toBeDefined();
    expect(findBehaviour(`${name}@some test`), name).toEqual(findBehaviour(name));
  }
});

/** Parts of the grammar with small numbers, each as likely as any other. */
const randomPart = () => {
  const { part } = partList[Math.floor(Math.random() * partList.length)] ?? { part: 'echo' };
  return part.replace(/<(\w+)>/g, (_, word: string) => {
    const number = Math.floor(Math.random() * 4);
    return word === 'status' ? String(400 + 50 * number) : word === 'word' ? 'OTHER' : String(number);
  });
};

it('a name of the grammar that is one of 200 random ones -> is known, and never breaks the simulator', async () => {
  const warned = vi.spyOn(process, 'emitWarning');
  const own = await startSimulator({ port: 0 });
  const models = Array.from({ length: 200 }, (_, index) => {
    const parts = Array.from({ length: 1 + Math.floor(Math.random() * 4) }, randomPart);
    return `sim-${parts.join('.')}@${index}`;
  });
  const leaving = new AbortController();
  const settled = models.map((model, index) => {
    expect(findBehaviour(model), model).toBeDefined();
    const provider = providerIds[index % providerIds.length] ?? 'openai';
    const asked = { model, stream: index % 8 < 4, tools: [{ name: 'weather', parameters: city }] };
    const request = requestOf(provider, asked);
    // Of some nothing is read: they may never end.
    const mayWait = /hang|stall|gate|drip|endless/.test(model);
    const answer = send(own.url, request, leaving.signal)
      .then((response) => (mayWait ? '' : response.text()))
      .catch(() => 'cut');
    return mayWait ? own.waitForCall((call) => call.model === model) : answer;
  });
  await Promise.all(settled);
  leaving.abort();
  await own.close();
  expect(warned.mock.calls).toEqual([]);
});

it('an error for the first calls -> stops after them, counted for each model', async () => {
  const statuses = async (model: string, times: number) => {
    const seen: number[] = [];
    while (seen.length < times) seen.push((await ask(model)).status);
    return seen;
  };
  expect(await statuses('sim-fail-2-503', 4)).toEqual([503, 503, 200, 200]);
  expect(await statuses('sim-fail-2-503-other', 3)).toEqual([503, 503, 200]);
  expect(await statuses('sim-fail-0-500', 1)).toEqual([200]);
  expect(await statuses('sim-good-2-503-key', 5)).toEqual([200, 200, 503, 503, 503]);
  expect(await statuses('sim-hang-0-key', 1)).toEqual([200]);
  expect(await statuses('sim-status-404.first-1@a', 2)).toEqual([404, 200]);
  expect(await statuses('sim-status-404.first-1@b', 1)).toEqual([404]);
  const limited = await ask('sim-limit-1-3-key');
  expect([limited.status, limited.headers.get('retry-after')]).toEqual([429, '3']);
  expect((await ask('sim-limit-1-3-key')).status).toBe(200);
});

it.each(providerIds)(
  'a model that the credentials do not open at %s -> a 401 that names it, to the first calls',
  async (provider) => {
    const model = 'sim-denied-1-key@a';
    const [denied, answered] = [
      await send(simulator.url, requestOf(provider, { model })),
      await send(simulator.url, requestOf(provider, { model })),
    ];
    expect([denied.status, answered.status]).toEqual([401, 200]);
    expect(await denied.text()).toContain(model);
    await answered.text();
  },
);

it('an endless stream without deltas -> sends something all the same', async () => {
  const leaving = new AbortController();
  const request = requestOf('openai', { model: 'sim-endless.say-0', stream: true });
  const reader = (await send(simulator.url, request, leaving.signal)).body?.getReader();
  for (let chunks = 0; chunks < 20; chunks += 1) expect((await reader?.read())?.done).toBe(false);
  leaving.abort();
});

it.each([true, false])(
  'a lull in the middle (streamed: %s) -> gives all that it would have given',
  async (stream) => {
    const { text } = await ask('sim-say-4.lull-5', stream);
    expect(text.match(/"content":"[ 1-4]+"/g)).toHaveLength(stream ? 4 : 1);
  },
);

it('a model of timestamps -> says when each delta was sent', async () => {
  const { text } = await ask('sim-timestamps-3-20', true);
  const times = [...text.matchAll(/\d{13}\.\d{3}/g)].map(([time]) => Number(time));
  expect(new Set(times).size).toBe(3);
  expect(times).toEqual(times.toSorted((a, b) => a - b));
});
