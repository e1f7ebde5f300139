import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ChatApp, startChatApp } from '../../support/chat-app.js';
import { asOperator } from '../../support/operator-client.js';

let app: ChatApp;
beforeAll(async () => {
  app = await startChatApp({ variables: { MAX_BODY_BYTES: '600000' } });
});
afterAll(() => app.close());

const ask = (body: unknown) => asOperator(app, { method: 'POST', path: '/admin/preview', body });

describe('POST /admin/preview', () => {
  it('a text as long as a post may be -> its page, which nobody stores', async () => {
    for (const content of ['', 'x', 'ü'.repeat(262_144)]) {
      const response = await ask({ content });
      expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store']);
      expect(await response.json()).toEqual({ html: `<p>${content}</p>` });
    }
  });

  it.each([
    [{ content: 'x'.repeat(262_145) }, '/content'],
    [{}, '/content'],
    [{ content: null }, '/content'],
    [{ content: 'x', title: 'x' }, ''],
  ])('a body that is no text alone -> 400 that points at %#', async (body, pointer) => {
    const response = await ask(body);
    expect([response.status, await response.json()]).toMatchObject([400, { errors: [{ pointer }] }]);
  });

  it('a body larger than any -> 413', async () => {
    expect((await ask({ content: 'x'.repeat(700_000) })).status).toBe(413);
  });
});
