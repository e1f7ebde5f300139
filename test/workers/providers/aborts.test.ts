import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterAll, describe, expect, it } from 'vitest';
import { startSimulator } from '../../../dev/simulator/server.js';
import { providerSetups, replyModes } from '../../support/providers.js';
import { ask } from '../../support/replies.js';

const simulator = await startSimulator({ port: 0 });
afterAll(() => simulator.close());

const reason = new Error('the deadline passed');

describe.each(providerSetups)('$name', async ({ name, load }) => {
  const provider = await load(simulator.url);
  afterAll(() => provider.close());

  describe.each(replyModes)('$mode', ({ mode, stream }) => {
    const tag = `${name}-${mode}`.replaceAll(' ', '-');

    it.each(['sim-hang', 'sim-hang-body', 'sim-drip-50'])(
      'closes the socket when aborted in the middle of %s',
      async (behaviour) => {
        const model = `${behaviour}@${tag}`;
        const controller = new AbortController();
        const begun = behaviour === 'sim-hang' ? undefined : headersReceived();
        const reply = settle(ask(provider, { model, stream, signal: controller.signal }));
        await begun;
        const call = await simulator.calls.waitFor((recorded) => recorded.model === model);
        controller.abort(reason);
        expect(await reply).toBe(reason);
        await call.closed;
        expect(call.clientClosedFirst).toBe(true);
      },
    );

    it('makes no call with a signal that is already aborted', async () => {
      const since = simulator.calls.lastId;
      const signal = AbortSignal.abort(reason);
      expect(await settle(ask(provider, { model: 'sim-echo', stream, signal }))).toBe(reason);
      expect(simulator.calls.list({ since })).toEqual([]);
    });
  });

  it('ends with the reason when aborted between two deltas, and closes the socket', async () => {
    const model = `sim-stream-1000-10@${name.replaceAll(' ', '-')}`;
    const controller = new AbortController();
    const deltas: string[] = [];
    const onDelta = (text: string) => {
      deltas.push(text);
      controller.abort(reason);
    };
    const { signal } = controller;
    expect(await settle(ask(provider, { model, stream: true, signal, onDelta }))).toBe(reason);
    expect(deltas).toHaveLength(1);
    const call = await simulator.calls.waitFor((recorded) => recorded.model === model);
    await call.closed;
    expect(call.clientClosedFirst).toBe(true);
  });
});

/** The error a call ends with, or its reply. */
const settle = (reply: Promise<unknown>): Promise<unknown> => reply.catch((error: unknown) => error);

/** Settles when the next answer's headers have arrived in this process, through fetch or through `node:http`. */
function headersReceived(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const channels = ['undici:request:headers', 'http.client.response.finish'];
  const settle = () => {
    for (const channel of channels) unsubscribe(channel, settle);
    resolve();
  };
  for (const channel of channels) subscribe(channel, settle);
  return promise;
}
