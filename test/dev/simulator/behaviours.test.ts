import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { behaviourList, findBehaviour } from '../../../dev/simulator/behaviours.js';
import { type Simulator, startSimulator } from '../../../dev/simulator/server.js';
import { providerIds } from '../../../shared/contracts/contract.js';
import { requestOf, send } from './requests.js';

let simulator: Simulator;
beforeAll(async () => {
  simulator = await startSimulator({ port: 0 });
});
afterAll(() => simulator.close());

async function ask(model: string, stream = false) {
  const response = await send(simulator.url, requestOf('openai', { model, stream }));
  return { status: response.status, headers: response.headers, text: await response.text() };
}

describe('a model', () => {
  it('that is listed -> is known, also with a mark', () => {
    const values: Record<string, string> = {
      ...{ status: '503', key: 'a.b-c', n: '2', ms: '30', seconds: '4', length: '9', word: 'OTHER' },
    };
    for (const { model } of behaviourList) {
      const name = model.replace(/<(\w+)>/g, (_, word: string) => values[word] ?? '');
      expect(findBehaviour(name), name).toBeDefined();
      expect(findBehaviour(`${name}@some test`), name).toEqual(findBehaviour(name));
    }
  });
});

describe('an error for the first calls', () => {
  it('-> stops after them, counted for each model', async () => {
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
    const limited = await ask('sim-limit-1-3-key');
    expect([limited.status, limited.headers.get('retry-after')]).toEqual([429, '3']);
    expect((await ask('sim-limit-1-3-key')).status).toBe(200);
  });
});

describe('a model that the credentials do not open', () => {
  it.each(providerIds)('at %s -> a 401 that names it, to the first calls', async (provider) => {
    const model = 'sim-denied-1-key@a';
    const [denied, answered] = [
      await send(simulator.url, requestOf(provider, { model })),
      await send(simulator.url, requestOf(provider, { model })),
    ];
    expect([denied.status, answered.status]).toEqual([401, 200]);
    expect(await denied.text()).toContain(model);
    await answered.text();
  });
});

describe('a model of timestamps', () => {
  it('-> says when each delta was sent', async () => {
    const { text } = await ask('sim-timestamps-3-20', true);
    const times = [...text.matchAll(/\d{13}\.\d{3}/g)].map(([time]) => Number(time));
    expect(new Set(times).size).toBe(3);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
  });
});
