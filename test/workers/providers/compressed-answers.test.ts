import { buffer } from 'node:stream/consumers';
import * as zlib from 'node:zlib';
import { afterAll, describe, expect, it } from 'vitest';
import { startSimulator } from '../../../dev/simulator/server.js';
import { singleFields } from '../../../workers/providers/http/http-client.js';
import { providerSetups, replyModes } from '../../support/providers.js';
import { ask } from '../../support/replies.js';
import { serve } from '../../support/serve.js';

/** What http-client.test.ts says of one client holds for every adapter. */

const simulator = await startSimulator({ port: 0 });
afterAll(() => simulator.close());

const encoders = {
  gzip: zlib.createGzip,
  br: zlib.createBrotliCompress,
  deflate: zlib.createDeflate,
  zstd: zlib.createZstdCompress,
};

/** The headers that belong to one connection. */
const hopByHop = ['connection', 'content-length', 'host', 'transfer-encoding'];

describe.each(Object.entries(encoders))('a proxy that compresses to %s', async (coding, createEncoder) => {
  const proxy = await serve(async (request, response) => {
    const answer = await fetch(`${simulator.url}${request.url}`, {
      method: 'POST',
      headers: Object.entries(singleFields(request.headers)).filter(([name]) => !hopByHop.includes(name)),
      body: await buffer(request),
    });
    const type = answer.headers.get('content-type') ?? '';
    response.writeHead(answer.status, { 'Content-Type': type, 'Content-Encoding': coding });
    const encoder = createEncoder();
    encoder.pipe(response);
    encoder.end(Buffer.from(await answer.arrayBuffer()));
  });
  afterAll(() => proxy.close());

  describe.each(providerSetups)('$name', async ({ load }) => {
    const provider = await load(proxy.url);
    afterAll(() => provider.close());

    it.each(replyModes)('$mode -> the reply is whole', async ({ stream }) => {
      const { text, reason } = await ask(provider, { model: 'sim-echo', stream });
      expect([text, reason]).toEqual([expect.stringContaining('Hello'), 'stop']);
    });

    it.each(replyModes)(
      '$mode, and the conversation is too long -> that is the failure',
      async ({ stream }) => {
        const asking = ask(provider, { model: 'sim-context-1', stream });
        await expect(asking).rejects.toMatchObject({ code: 'context_length_exceeded', retryable: false });
      },
    );
  });
});
