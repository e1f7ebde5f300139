import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { limitResponse } from '../../../workers/providers/response-limit.js';

const limits = { maxResponseBytes: 100_000 };
const tooLarge = { code: 'provider_error', retryable: false };

describe('limitResponse', () => {
  it.each([
    { said: 'its length', headers: { 'Content-Length': 100_000 } },
    { said: 'no length', headers: {} },
  ])('passes on an answer that is as large as the limit and says $said', async ({ headers }) => {
    const { incoming } = await answerWith(headers, Buffer.alloc(100_000));
    expect(await readAll(limitResponse(incoming, limits))).toBe(100_000);
  });

  it('gives up at the first byte too many and closes the connection', async () => {
    const { incoming, closed } = await answerWith({}, Buffer.alloc(100_001), { end: false });
    await expect(readAll(limitResponse(incoming, limits))).rejects.toMatchObject(tooLarge);
    await closed;
  });

  it('does not wait for a body that says it is too large', async () => {
    const { incoming, closed } = await answerWith({ 'Content-Length': 100_001 }, Buffer.alloc(1), {
      end: false,
    });
    expect(() => limitResponse(incoming, limits)).toThrow(expect.objectContaining(tooLarge));
    await closed;
  });
});

async function readAll(bytes: AsyncIterable<Buffer>): Promise<number> {
  let length = 0;
  for await (const chunk of bytes) length += chunk.length;
  return length;
}

/** An answer on its way, and a promise for the end of its connection. */
async function answerWith(headers: OutgoingHttpHeaders, body: Buffer, { end = true } = {}) {
  const closed = Promise.withResolvers<void>();
  const server = createServer((_, response) => {
    response.on('close', closed.resolve).writeHead(200, headers).write(body);
    if (end) response.end();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const request = get({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' });
  const [incoming] = (await once(request, 'response')) as [IncomingMessage];
  return { incoming, closed: closed.promise };
}
