import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type CallFacts, CallLog } from '../../../dev/simulator/calls.js';
import { type Simulator, startSimulator } from '../../../dev/simulator/server.js';
import { statusFor } from '../../support/host-header.js';
import { requestOf, send } from './requests.js';

const facts: CallFacts = {
  provider: 'openai',
  model: 'sim-echo',
  method: 'POST',
  path: '/v1/chat/completions',
  stream: false,
  hasCredentials: true,
  receivedAt: 0,
};
const content = (bytes: number) => ({ body: { bytes }, turns: [], bytes });

describe('the log of calls', () => {
  it('with more calls than it holds -> keeps the newest', () => {
    const log = new CallLog({ calls: 3, bodyBytes: 1000 });
    for (let index = 0; index < 7; index += 1) log.record(facts, content(1));
    expect(log.list().map(({ id }) => id)).toEqual([5, 6, 7]);
    expect(log.list({ since: 6 }).map(({ id }) => id)).toEqual([7]);
    expect(log.stats()).toMatchObject({ lastId: 7, kept: 3, keptBodyBytes: 3 });
  });

  it('with bodies that are too large together -> drops the oldest', () => {
    const log = new CallLog({ calls: 4, bodyBytes: 100 });
    for (const bytes of [10, 10, 10, 10, 10, 90, 5]) log.record(facts, content(bytes));
    expect(log.list().map(({ body }) => body)).toEqual([undefined, undefined, { bytes: 90 }, { bytes: 5 }]);
    expect(log.stats()).toMatchObject({ keptBodyBytes: 95 });
  });

  it('that is cleared -> forgets all but the count of calls in flight', () => {
    const log = new CallLog();
    const calls = [1, 2, 3].map(() => log.record(facts, content(1)));
    for (const call of calls.slice(1)) log.close(call, 'finished');
    expect(log.stats().providers.openai).toEqual({ total: 3, inFlight: 1, peakInFlight: 3 });
    log.clear();
    expect(log.stats().providers.openai).toEqual({ total: 0, inFlight: 1, peakInFlight: 1 });
    expect(log.list()).toEqual([]);
  });
});

describe('the control path', () => {
  let simulator: Simulator;
  beforeEach(async () => {
    simulator = await startSimulator({ port: 0 });
  });
  afterEach(() => simulator.close());

  const get = async (path: string, method = 'GET') => {
    const response = await fetch(simulator.url + path, { method });
    expect(response.headers.get('x-simulator')).toBe('quillgate');
    const text = await response.text();
    return { status: response.status, json: text === '' ? undefined : JSON.parse(text) };
  };
  /** A call that is never answered; what its client sees at its end. */
  const hang = (signal?: AbortSignal) =>
    send(simulator.url, requestOf('openai', { model: 'sim-hang' }), signal).catch((error: Error) => error);
  const ask = async (model: string) => (await send(simulator.url, requestOf('openai', { model }))).text();

  it.each(['/', '/__simulator'])('at %s -> says that this is a simulator and what it knows', async (path) => {
    const { json } = await get(path);
    expect(json).toMatchObject({ simulator: true, note: expect.stringContaining('No model is ever called') });
    expect(json.models).toContainEqual({ model: 'sim-hang', does: 'never answers' });
    expect(json.steps).toContainEqual({ step: 'say', does: 'says this' });
  });

  it.each(['/', '/__simulator/calls', '/v1/models'])(
    'at %s, for a web page whose name leads to this machine -> says nothing',
    async (path) => {
      await ask('sim-echo');
      expect(await statusFor(simulator.url + path, 'evil.example')).toBe(421);
      expect(simulator.calls.list({})).toHaveLength(1);
    },
  );

  it.each(['/nothing', '/__simulator/nothing'])('at %s -> has nothing', async (path) => {
    expect(await get(path)).toMatchObject({ status: 404, json: { simulator: true } });
    expect(await get(path, 'POST')).toMatchObject({ status: 404, json: { simulator: true } });
  });

  it('after calls -> lists them with their conversation, filters and forgets them', async () => {
    await ask('sim-echo');
    await ask('sim-status-503');
    await ask('sim-fail-1-500');
    const { json } = await get('/__simulator/calls');
    expect(json[0]).toMatchObject({
      id: 1,
      provider: 'openai',
      model: 'sim-echo',
      path: '/v1/chat/completions',
      status: 200,
      turns: [{ role: 'user', content: 'Hello' }],
      body: { messages: [{ role: 'user', content: 'Hello' }] },
      receivedAt: expect.stringMatching(/^\d{4}-/),
      finishedAt: expect.stringMatching(/^\d{4}-/),
      clientClosedFirst: false,
    });
    expect((await get('/__simulator/calls?model=sim-status-503')).json).toMatchObject([{ id: 2 }]);
    expect((await get('/__simulator/calls?since=2')).json).toHaveLength(1);
    expect((await get('/__simulator/calls?since=x')).status).toBe(400);
    expect((await get('/__simulator/calls', 'DELETE')).status).toBe(204);
    expect((await get('/__simulator/calls')).json).toEqual([]);
    // Its counter is forgotten too, so it fails again.
    expect(await ask('sim-fail-1-500')).toContain('server_error');
  });

  it('after a call -> has its body byte for byte, and its headers without credentials', async () => {
    const { path, headers } = requestOf('anthropic');
    const body =
      '{ "max_tokens": 1e2, "model":"sim-echo", "messages":[{"role":"user","content":"\\u00e9 é"}], "metadata": {} }';
    const sent = { ...headers, 'anthropic-beta': 'a-1,b-2' };
    await (await fetch(simulator.url + path, { method: 'POST', headers: sent, body })).text();
    const [call] = simulator.calls.list();
    expect([call?.text, call?.headers]).toEqual([
      body,
      expect.objectContaining({ 'anthropic-beta': 'a-1,b-2' }),
    ]);
    expect(call?.headers).not.toHaveProperty('x-api-key');
    expect((await get('/__simulator/calls')).json[0].headers).toEqual(call?.headers);
    const kept = await fetch(`${simulator.url}/__simulator/calls/1/body`);
    expect(await kept.text()).toBe(body);
    expect((await get('/__simulator/calls/2/body')).status).toBe(404);
  });

  it('asked to wait -> answers at a call, and at its end', async () => {
    const leaving = new AbortController();
    const called = get('/__simulator/calls?model=sim-hang&wait=call');
    const closed = get('/__simulator/calls?model=sim-hang&wait=close');
    const hanging = hang(leaving.signal);
    expect((await called).json).toMatchObject([{ model: 'sim-hang', status: null, closedAt: null }]);
    leaving.abort();
    expect((await closed).json).toMatchObject([
      { clientClosedFirst: true, finishedAt: null, closedAt: expect.any(String) },
    ]);
    expect(await hanging).toBeInstanceOf(Error);
  });

  it('asked to wait for what does not come -> gives up at the timeout', async () => {
    expect((await get('/__simulator/calls?wait=call&timeoutMs=20')).status).toBe(408);
    expect((await get('/__simulator/calls?wait=forever')).status).toBe(400);
  });

  it('of a simulator that closes -> its hanging calls end, and the client is not blamed', async () => {
    const hanging = hang();
    const call = await simulator.waitForCall(({ model }) => model === 'sim-hang');
    await simulator.close();
    await call.closed;
    expect(call.clientClosedFirst).toBe(false);
    expect(await hanging).toMatchObject({ message: 'fetch failed' });
  });
});
