import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { authorization, type Deployment, startDeployment } from '../../support/deployment.js';

let deployment: Deployment;
beforeAll(async () => {
  deployment = await startDeployment({
    variables: {
      CHAT_BASE_URL: 'https://chat.example/api',
      CHAT_BASE_URL_ALT: 'https://chat.example/api/v1',
    },
  });
});
afterAll(() => deployment.stop());

const get = async (path: string) => {
  const response = await fetch(`${deployment.url}${path}`);
  return { status: response.status, type: response.headers.get('content-type'), text: await response.text() };
};

describe('/openapi.json', () => {
  it('describes the chat operation: its address, and which headers an answer always has', async () => {
    const document = JSON.parse((await get('/openapi.json')).text);
    expect(document.info).toMatchObject({ title: 'Quillgate', version: '1.0.0' });
    expect(document.servers).toEqual([
      { url: 'https://chat.example/api' },
      { url: 'https://chat.example/api/v1' },
    ]);
    const { post } = document.paths['/chat'];
    const isRequired = (status: string, name: string) => post.responses[status].headers[name].required;
    expect(isRequired('202', 'Location')).toBe(true);
    for (const status of ['200', '202', '500']) expect(isRequired(status, 'Content-Location')).toBe(false);
    for (const name of ['Idempotency-Replayed', 'X-LLM-Finish-Reason'])
      expect(isRequired('200', name)).toBe(false);
    for (const status of ['429', '500']) expect(isRequired(status, 'Retry-After')).toBe(false);
    const header = post.parameters.find(({ name }: { name: string }) => name === 'X-LLM');
    expect(header).toMatchObject({ in: 'header', required: true });
  });
});

describe('the bases', () => {
  it('lead back to a chat from where it was asked for', async () => {
    const headers = { Prefer: 'respond-async' };
    const { headers: answer } = await deployment.chat({ path: '/api/v1/chat', headers });
    expect(answer.get('location')).toMatch(/^\/api\/v1\/chat\/[0-9a-f-]{36}$/);
    const chat = await fetch(`${deployment.url}${answer.get('location')}`, {
      headers: { Authorization: authorization },
    });
    expect(chat.status).toBe(200);
  });

  it('mount the operation under their own paths alone', async () => {
    expect((await deployment.chat({ path: '/api/chat' })).status).toBe(200);
    expect((await deployment.chat({ path: '/api/v1/chat' })).status).toBe(200);
    expect((await deployment.chat({ path: '/chat' })).status).toBe(404);
  });
});

describe('/docs', () => {
  it('is a page that loads everything from this server', async () => {
    const page = await get('/docs');
    expect(page).toMatchObject({ status: 200, type: expect.stringMatching(/^text\/html/) });
    const sources = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, source]) => source ?? '');
    expect(sources.length).toBeGreaterThan(2);
    for (const source of sources) {
      expect(source).toMatch(/^\/docs\//);
      expect((await get(source)).status).toBe(200);
    }
  });
});

describe('a file of the page', () => {
  it.each([{ Range: 'bytes=99999999-' }, { 'If-Match': '"x"' }])('is sent whole for %o', async (headers) => {
    const response = await fetch(`${deployment.url}/docs/swagger-ui.css`, { headers });
    await response.arrayBuffer();
    expect(response.status).toBe(200);
  });

  it('is not one of those that the page does not need', async () => {
    expect((await get('/docs/swagger-initializer.js')).status).toBe(404);
    expect((await get('/docs/package.json')).status).toBe(404);
  });

  it('is not forced onto https, and takes no other method', async () => {
    const response = await fetch(`${deployment.url}/docs`, { method: 'POST' });
    expect(response.status).toBe(405);
    expect(response.headers.get('content-security-policy')).not.toMatch(/upgrade-insecure-requests/);
  });
});
