import { afterAll, describe, expect, it } from 'vitest';
import { startSimulator } from '../../../dev/simulator/server.js';
import type { Failure } from '../../../shared/failures.js';
import { providerSetups, replyModes } from '../../support/providers.js';
import { ask } from '../../support/replies.js';

const simulator = await startSimulator({ port: 0 });
afterAll(() => simulator.close());

const maxResponseBytes = 16_384;
const tooLarge = { code: 'provider_error', retryable: false, cause: { word: 'oversized' } };

describe.each(providerSetups)('$name', async ({ name, load }) => {
  const provider = await load(simulator.url, { maxResponseBytes });
  afterAll(() => provider.close());

  describe.each(replyModes)('$mode', ({ mode, stream }) => {
    it.each(['sim-endless', 'sim-endless-429'])(
      'an answer of %s that has no end -> ended at the limit, with its connection, and not asked for again',
      async (behaviour) => {
        const model = `${behaviour}@${name}-${mode}`.replaceAll(' ', '-');
        const failure = await failureOf(ask(provider, { model, stream }));
        expect(failure).toMatchObject(tooLarge);
        const call = await simulator.calls.waitFor((recorded) => recorded.model === model);
        await call.closed;
        expect(call.clientClosedFirst).toBe(true);
        expect(simulator.calls.list().filter((recorded) => recorded.model === model)).toHaveLength(1);
      },
    );
  });
});

const failureOf = (call: Promise<unknown>): Promise<Failure> =>
  call.then(
    () => expect.unreachable('the call ended well'),
    (error: Failure) => error,
  );
