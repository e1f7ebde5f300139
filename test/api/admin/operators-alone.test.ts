import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ChatApp, startChatApp } from '../../support/chat-app.js';
import { asOperator } from '../../support/operator-client.js';

let app: ChatApp;
beforeAll(async () => {
  app = await startChatApp();
});
afterAll(() => app.close());

const id = '019a8f3e-5c71-7d2a-b3f4-0a1b2c3d4e5f';
const token = { owner: 'ann', scopes: ['admin'] };

describe('the addresses of operators', () => {
  it.each<[method: string, path: string, statusWithoutStores: number, body?: object]>([
    ['GET', 'users', 503],
    ['POST', 'users', 503, { name: 'a' }],
    ['DELETE', 'users/a', 503],
    ['POST', 'users/a/secret', 503],
    ['GET', 'tokens', 503],
    ['POST', 'tokens', 503, token],
    ['DELETE', `tokens/${id}`, 503],
    ['GET', 'audit', 503],
    ['GET', 'pools', 200],
    ['GET', 'pools/openai/jobs', 500],
    ['GET', 'pools/openai', 500],
    ['PUT', 'pools/openai', 400, {}],
    ['GET', 'requests', 200],
    ['GET', 'samples', 200],
    ['HEAD', 'events', 200],
    ['POST', 'preview', 200, { content: '' }],
  ])('are 401 and 403 to %s %s for others, and %i for operators without the stores', async (...row) => {
    const [method, path, status, body] = row;
    const ask = (token: string) => asOperator(app, { method, path: `/admin/${path}`, body, token });
    const answers = [await ask('nobody'), await ask('reader'), await ask('operator')];
    expect(answers.map((answer) => answer.status)).toEqual([401, 403, status]);
    expect(answers[0]?.headers.get('www-authenticate')).toBe('Bearer realm="admin"');
  });
});
