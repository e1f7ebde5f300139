import { gzipSync } from 'node:zlib';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { startSimulator } from '../../../dev/simulator/server.js';
import type { Failure } from '../../../shared/failures.js';
import { providerSetups, replyModes } from '../../support/providers.js';
import { ask } from '../../support/replies.js';
import { serve } from '../../support/serve.js';

const simulator = await startSimulator({ port: 0 });
afterAll(() => simulator.close());

const maxResponseBytes = 262_144;
const tooLarge = { code: 'provider_error', retryable: false, cause: { word: 'oversized' } };

describe.each(providerSetups)('$name', async ({ name, load }) => {
  const provider = await load(simulator.url, { maxResponseBytes });
  afterAll(() => provider.close());

  describe.each(replyModes)('$mode', ({ mode, stream }) => {
    it.each(['sim-endless', 'sim-endless-400', 'sim-endless-429', 'sim-endless-503'])(
      'ends the answer of %s at the limit and closes the connection',
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

    it('ends a valid answer that is larger than the limit', async () => {
      const reply = ask(provider, { model: 'sim-stream-99999-0', stream });
      expect(await failureOf(reply)).toMatchObject(tooLarge);
    });

    it('reads a long answer below the limit', async () => {
      const { text } = await ask(provider, { model: 'sim-stream-700-0', stream });
      expect(text).toMatch(/ 700$/);
    });

    it('does not decompress what it has not asked to be compressed', async () => {
      const bomb = gzipSync(Buffer.alloc(64 * maxResponseBytes, ' '));
      expect(bomb.length).toBeLessThan(maxResponseBytes);
      const headers = { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' };
      const server = await serve((request, response) => {
        request.resume().on('end', () => response.writeHead(200, headers).end(bomb));
      });
      const misled = await load(server.url, { maxResponseBytes });
      onTestFinished(() => {
        misled.close();
        return server.close();
      });
      const failure = await failureOf(ask(misled, { model: 'sim-echo', stream }));
      expect(failure.code).toBe('provider_error');
    });
  });
});

const failureOf = (call: Promise<unknown>): Promise<Failure> =>
  call.then(
    () => expect.unreachable('the call ended well'),
    (error: Failure) => error,
  );
