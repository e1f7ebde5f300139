import { afterAll, describe, expect, it, vi } from 'vitest';
import type { Call } from '../../../dev/simulator/calls.js';
import { startSimulator } from '../../../dev/simulator/server.js';
import { type ProviderId, providerIds } from '../../../shared/contracts/contract.js';
import { patience } from '../../support/patience.js';
import { city, requestOf, send, type TestRequest } from './requests.js';

const simulator = await startSimulator({ port: 0 });
afterAll(() => simulator.close());

/** The answer to a request so far: the body is read as it comes. */
function begin(request: TestRequest, signal?: AbortSignal) {
  const heard = { status: 0, text: '', ended: Promise.resolve<unknown>(undefined) };
  const read = async () => {
    const response = await send(simulator.url, request, signal);
    heard.status = response.status;
    const decoder = new TextDecoder('latin1');
    for await (const bytes of response.body ?? []) heard.text += decoder.decode(bytes as Uint8Array);
  };
  heard.ended = read().catch(() => 'left');
  return heard;
}

const callOf = (model: string): Promise<Call> => simulator.waitForCall((call) => call.model === model);
/** Gives the simulator the time of a whole call of its own, in which it would send what nothing holds back. */
const comeAndGo = () => begin(requestOf('openai')).ended;
/** Waits until at least so many things have been heard, and for another whole call. */
async function hear(amount: number, things: () => unknown[]): Promise<void> {
  await vi.waitFor(() => expect(things().length).toBeGreaterThanOrEqual(amount), patience);
  await comeAndGo();
}
const numbersIn = (text: string) =>
  [...text.matchAll(/"(?:text|content)":" ?(\d+)"/g)].map(([, number]) => Number(number));
const piecesIn = (text: string) =>
  [...text.matchAll(/"(?:arguments|partial_json|input)":"((?:[^"\\]|\\.)+)"/g)].map(([, piece]) => piece);

describe.each(providerIds)('a gate at %s', (provider: ProviderId) => {
  it('-> lets n deltas through, and the rest with a proper end when it opens', async () => {
    const model = `sim-gate-2@${provider}`;
    const heard = begin(requestOf(provider, { model, stream: true }));
    const call = await callOf(model);
    await hear(2, () => numbersIn(heard.text));
    expect(numbersIn(heard.text)).toEqual([1, 2]);
    expect(call.ended).toBeUndefined();
    simulator.open(model);
    expect(await heard.ended).toBeUndefined();
    expect(numbersIn(heard.text)).toEqual([1, 2, 3, 4]);
    await call.closed;
    expect(call.finishedAt).toBeDefined();
  });

  it('in a call -> lets n pieces of arguments through, and the rest when it opens', async () => {
    const model = `sim-tool-gate-3@${provider}`;
    const tools = [{ name: 'weather', parameters: city }];
    const heard = begin(requestOf(provider, { model, tools, stream: true }));
    await callOf(model);
    // A call of Vertex AI comes whole.
    const amount = provider === 'vertexai' ? 0 : 3;
    await hear(amount, () => piecesIn(heard.text));
    expect(piecesIn(heard.text)).toHaveLength(amount);
    simulator.open(model);
    expect(await heard.ended).toBeUndefined();
    expect(piecesIn(heard.text)).toHaveLength(2 * amount);
  });
});

describe('a gate', () => {
  it.each([
    ['of no deltas', 'sim-gate-0', true],
    ['of no pieces', 'sim-tool-gate-0', true],
    ['before a whole reply', 'sim-gate-2', false],
  ])('%s -> holds back the headers as well', async (_, model, stream) => {
    const heard = begin(requestOf('openai', { model, stream }));
    await callOf(model);
    await comeAndGo();
    expect(heard.status).toBe(0);
    simulator.open(model);
    expect(await heard.ended).toBeUndefined();
    expect(heard).toMatchObject({ status: 200, text: expect.stringContaining('stop') });
  });

  it('-> belongs to the whole name, is opened from outside, and stays open until a reset', async () => {
    const [model, other] = ['sim-gate-0@a/b', 'sim-gate-0@other'];
    const control = (method: string, path: string) =>
      fetch(`${simulator.url}/__simulator/${path}`, { method });
    const open = (name: string) => control('POST', `gates/${encodeURIComponent(name)}`);
    expect((await open(model)).status).toBe(204);
    await begin(requestOf('openai', { model })).ended;
    const waiting = begin(requestOf('openai', { model: other }));
    await callOf(other);
    await begin(requestOf('openai', { model })).ended;
    expect(waiting.status).toBe(0);
    await control('DELETE', 'calls');
    const closed = begin(requestOf('openai', { model }));
    await callOf(model);
    await comeAndGo();
    expect([closed.status, waiting.status]).toEqual([0, 0]);
    for (const name of [model, other]) simulator.open(name);
    await Promise.all([closed.ended, waiting.ended]);
    expect([closed.status, waiting.status]).toEqual([200, 200]);
  });

  it('that no model has -> is not opened', async () => {
    expect(() => simulator.open('sim-echo')).toThrow('The model sim-echo has no gate.');
    const path = '/__simulator/gates/sim-echo';
    expect((await fetch(simulator.url + path, { method: 'POST' })).status).toBe(404);
  });
});
