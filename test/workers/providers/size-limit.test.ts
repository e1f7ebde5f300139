import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { startSimulator } from '../../../dev/simulator/server.js';
import type { Failure } from '../../../shared/failures.js';
import { providerSetups } from '../../support/providers.js';
import { ask } from '../../support/replies.js';

const simulator = await startSimulator({ port: 0 });
afterAll(() => simulator.close());

const maxResponseBytes = 262_144;
const modes = [
  { mode: 'whole', stream: false },
  { mode: 'streamed', stream: true },
];
const tooLarge = { code: 'provider_error', retryable: false, cause: { word: 'oversized' } };

describe.each(providerSetups)('$name', async ({ name, load }) => {
  const provider = await load(simulator.url, { maxResponseBytes });
  afterAll(() => provider.close());

  describe.each(modes)('$mode', ({ mode, stream }) => {
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
      const url = await serve((_, response) => {
        const headers = { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' };
        response.writeHead(200, headers).end(bomb);
      });
      const misled = await load(url, { maxResponseBytes });
      onTestFinished(() => misled.close());
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

async function serve(answer: RequestListener): Promise<string> {
  const server = createServer((request, response) =>
    request.resume().on('end', () => answer(request, response)),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
