import { afterAll, describe, expect, it } from 'vitest';
import { startApp } from '../../support/app.js';

const app = await startApp({ variables: { MAX_BODY_BYTES: '600000' } });
afterAll(app.close);

const ask = (body: unknown) => app.operate({ path: '/admin/preview', body });

describe('POST /admin/preview', () => {
  it('a text as long as a post may be -> its page, which nobody stores', async () => {
    for (const content of ['', 'x', 'ü'.repeat(262_144)]) {
      const response = await ask({ content });
      expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store']);
      expect(response.body).toEqual({ html: `<p>${content}</p>` });
    }
  });

  it.each([
    [{ content: 'x'.repeat(262_145) }, '/content'],
    [{}, '/content'],
    [{ content: null }, '/content'],
    [{ content: 'x', title: 'x' }, ''],
  ])('a body that is no text alone -> 400 that points at %#', async (body, pointer) => {
    expect(await ask(body)).toMatchObject({ status: 400, body: { errors: [{ pointer }] } });
  });

  it('a body larger than any -> 413', async () => {
    expect((await ask({ content: 'x'.repeat(700_000) })).status).toBe(413);
  });
});
