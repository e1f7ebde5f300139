import express, { type Request } from 'express';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { traceOf, traceRequests } from '../../../api/http/request-log.js';
import type { TraceSpan, Tracing } from '../../../shared/runtime/tracing.js';
import { patience } from '../../support/patience.js';
import { serve } from '../../support/serve.js';

const parents: (string | undefined)[] = [];
const ended: string[] = [];
const span: TraceSpan = {
  ...{ traceId: 'id', traceparent: 'own', rename: () => undefined, set: () => undefined },
  start: () => span,
  end: () => void ended.push('ended'),
};
const tracing: Tracing = {
  start: (_name, traceparent) => {
    parents.push(traceparent);
    return span;
  },
  close: async () => undefined,
};
const app = express();
app.use((_request, response, next) => {
  response.locals.startedAt = performance.now();
  next();
});
app.use(traceRequests(tracing));
app.use('/known', (request: Request & { user?: object }, _response, next) => {
  request.user = {};
  next();
});
app.use((_request, response) => {
  traceOf(response);
  response.end();
});
const server = await serve(app);
afterAll(() => server.close());

const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;

describe('traceRequests', () => {
  it("continues a caller's trace with valid credentials, and no stranger's", async () => {
    for (const path of ['/known', '/unknown']) await fetch(server.url + path, { headers: { traceparent } });
    await vi.waitFor(() => expect(ended).toHaveLength(2), patience);
    expect(parents).toEqual([traceparent, undefined]);
  });
});
