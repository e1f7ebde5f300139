import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { problemForRawSocket } from '../../../api/http/problem.js';
import { Failure, failureCodes, failureKinds } from '../../../shared/failures.js';
import { serveRoutes } from '../../support/app.js';
import { createClient } from '../../support/client.js';
import { createRecordingLog } from '../../support/recording-log.js';

const logged = createRecordingLog();
let thrown: unknown;
const server = await serveRoutes(
  (app) =>
    app.get('/throw', () => {
      throw thrown;
    }),
  logged.log,
);
afterAll(server.close);
afterEach(() => {
  logged.lines.length = 0;
});

const client = createClient(server.url);
const answerTo = (error: unknown) => {
  thrown = error;
  return client<Record<string, unknown>>({ path: '/throw' });
};

describe('a failure that', () => {
  it.each(failureCodes)('is %s -> its status, and nothing that it does not know', async (code) => {
    const { status: sent, headers, body } = await answerTo(new Failure(code));
    const { status, title, detail, retryable } = failureKinds[code];
    expect(sent).toBe(status);
    expect(headers.get('content-type')).toMatch(/^application\/problem\+json(; charset=utf-8)?$/);
    const { retryAfterMs } = failureKinds[code];
    expect(headers.get('retry-after')).toBe(retryAfterMs ? String(retryAfterMs / 1000) : null);
    expect(body).toEqual({
      type: expect.stringContaining(code),
      title,
      status,
      detail,
      code,
      requestId: 'the-id',
      ...(status === 500 && { retryable }),
    });
  });

  it('has facts and a cause -> the facts, and never the cause', async () => {
    const errors = [{ pointer: '/messages/0', detail: 'is wrong' }];
    const facts = { errors, provider: 'bedrock' as const, detail: 'More.', cause: new Error('canary') };
    const { body } = await answerTo(new Failure('provider_error', { ...facts, retryable: false }));
    expect(body).toMatchObject({ errors, provider: 'bedrock', detail: 'More.', retryable: false });
    expect(JSON.stringify(body)).not.toContain('canary');
  });

  it.each([
    [0, '0'],
    [1, '1'],
    [1000, '1'],
    [1001, '2'],
    [59_999.5, '60'],
  ])(
    'is to be tried again in %d ms -> Retry-After: %s, rounded up to seconds',
    async (retryAfterMs, expected) => {
      const { headers } = await answerTo(new Failure('overloaded', { retryAfterMs }));
      expect(headers.get('retry-after')).toBe(expected);
    },
  );

  it.each([
    [
      'an error',
      Object.assign(new Error('canary'), { status: 418, code: 'CANARY', headers: { canary: '1' } }),
    ],
    ['an error that names a type', Object.assign(new Error('canary'), { type: 'canary' })],
    ['a text', 'canary'],
    ['an object', { status: 404, message: 'canary' }],
    ['null', null],
  ])('is %s -> internal, nothing more, and a line of the log', async (name, error) => {
    const { status, headers, body } = await answerTo(error);
    // Express takes a thrown null for no error at all.
    if (name === 'null') return expect(status).toBe(404);
    expect([status, body.code]).toEqual([500, 'internal']);
    expect(JSON.stringify([body, [...headers]]).toLowerCase()).not.toContain('canary');
    expect(logged.lines).toEqual([
      expect.objectContaining({ code: 'internal', requestId: 'the-id', level: 50 }),
    ]);
  });

  it('was expected -> no line of the log', async () => {
    await answerTo(new Failure('provider_timeout'));
    expect(logged.lines).toEqual([]);
  });
});

describe('problemForRawSocket', () => {
  it.each([
    ['HPE_HEADER_OVERFLOW', 431],
    ['ERR_HTTP_REQUEST_TIMEOUT', 408],
    ['HPE_INVALID_METHOD', 400],
    [undefined, 400],
  ])('%s -> a whole %i', (code, status) => {
    const [head = '', body = ''] = problemForRawSocket({ code }).split('\r\n\r\n');
    expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(head).toContain(`Content-Length: ${Buffer.byteLength(body)}`);
    expect(head).toContain('Connection: close');
    expect(JSON.parse(body)).toMatchObject({ status, code: 'invalid_request' });
  });
});
