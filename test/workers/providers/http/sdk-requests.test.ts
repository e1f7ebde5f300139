import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { reuseRequest } from '../../../../workers/providers/http/patches/sdk-requests.js';

let sent: { path: string; own: string; body: unknown }[] = [];
beforeEach(() => {
  sent = [];
});

const fetch: typeof globalThis.fetch = async (url, init) => {
  const own = new Headers(init?.headers).get('x-own') ?? '';
  sent.push({ path: new URL(String(url)).pathname, own, body: init?.body });
  return Response.json({});
};
const settings = { apiKey: 'test-key', baseURL: 'https://llm.example', fetch };

describe.each([
  ['openai', () => new OpenAI(settings)],
  ['anthropic', () => new Anthropic(settings)],
])('%s', (_, open) => {
  const openReusing = () => {
    const client = open();
    const build = vi.spyOn(client, 'buildRequest');
    reuseRequest(client as Parameters<typeof reuseRequest>[0]);
    const ask = (path: string, body: object, headers?: Record<string, string>) =>
      client.post(path, { body, ...(headers && { headers }) });
    return { ask, build };
  };

  it('two paths and two sets of headers, in turns -> each call has its own, and each is built once', async () => {
    const { ask, build } = openReusing();
    for (const n of [1, 2, 3]) {
      await ask('/a', { n });
      await ask('/b', { n });
      await ask('/a', { n }, { 'X-Own': 'one' });
      await ask('/a', { n }, { 'X-Own': 'two' });
    }
    const shown = sent.map(({ path, own, body }) => `${path} ${own} ${body}`);
    const round = (n: number) => [
      `/a  {"n":${n}}`,
      `/b  {"n":${n}}`,
      `/a one {"n":${n}}`,
      `/a two {"n":${n}}`,
    ];
    expect(shown).toEqual([1, 2, 3].flatMap(round));
    expect(build).toHaveBeenCalledTimes(4);
  });

  it('more paths than are kept -> each call has its own', async () => {
    const { ask, build } = openReusing();
    const paths = Array.from({ length: 100 }, (_, n) => `/${n}`);
    for (const path of [...paths, '/99']) await ask(path, {});
    expect(sent.map(({ path }) => path)).toEqual([...paths, '/99']);
    expect(build).toHaveBeenCalledTimes(100);
  });
});
