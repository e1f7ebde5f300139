import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ChatApp, startChatApp } from '../../support/chat-app.js';

let app: ChatApp;
beforeAll(async () => {
  app = await startChatApp({ variables: { MAX_BODY_BYTES: '600000' } });
});
afterAll(() => app.close());

const ask = (body: unknown, headers: Record<string, string> = {}) =>
  fetch(`${app.url}/admin/preview`, {
    method: 'POST',
    headers: { Authorization: 'Bearer operator', 'Content-Type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });

describe('POST /admin/preview', () => {
  it('renders a text, as long as a post may be', async () => {
    for (const content of ['', 'x', 'ü'.repeat(262_144)]) {
      const response = await ask({ content });
      expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store']);
      expect(await response.json()).toEqual({ html: `<p>${content}</p>` });
    }
  });

  it.each([
    [400, { content: 'x'.repeat(262_145) }, '/content'],
    [400, {}, '/content'],
    [400, { content: null }, '/content'],
    [400, { content: 'x', title: 'x' }, ''],
    [400, [], ''],
  ])('is %i for a wrong body', async (status, body, pointer) => {
    const response = await ask(body);
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ errors: [{ pointer }] });
  });

  it('takes JSON alone, and no more than it must', async () => {
    expect((await ask('x', { 'Content-Type': 'text/markdown' })).status).toBe(415);
    expect((await ask({ content: 'x'.repeat(700_000) })).status).toBe(413);
    const { status, headers } = await fetch(`${app.url}/admin/preview`);
    expect([status, headers.get('allow')]).toEqual([405, 'POST']);
  });
});
