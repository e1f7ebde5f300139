import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Turn } from '../../../shared/conversation.js';
import { fillText } from '../../../shared/json/json-worker.js';
import type { HttpClient, HttpRequest } from '../../../workers/providers/http/http-client.js';
import { standIn } from '../../../workers/providers/provider.js';
import { loadProvider, type ProviderAccess } from '../../../workers/providers/provider-settings.js';

const baseUrl = 'http://127.0.0.1:1';
const settings: { [Id in keyof ProviderAccess]: ProviderAccess[Id][] } = {
  openai: (['responses', 'chat'] as const).map((wire) => ({ apiKey: 'k', baseUrl, wire })),
  anthropic: [{ apiKey: 'k', baseUrl, promptCache: 'auto' }],
  bedrock: [
    { region: 'us-east-1', endpoint: baseUrl, credentials: { accessKeyId: 'a', secretAccessKey: 'b' } },
  ],
  vertexai: [{ apiKey: 'k', baseUrl }],
};
const long = (say: string) => say.repeat(2000);
const result = (callId: string, content: string) => ({ type: 'tool_result', callId, content }) as const;
const call = (id: string) => ({ type: 'tool_call', id, name: 'f', arguments: '{"a":1.0}' }) as const;

/** Blank texts, those of one role in a row, and results that an adapter reads. */
const turns: Turn[] = [
  { role: 'system', content: long('Be "short".\n') },
  { role: 'user', content: long('雨\u2028\\') },
  {
    role: 'user',
    content: [
      { type: 'text', text: long(' ') },
      { type: 'text', text: long('🎉\u0000') },
    ],
  },
  { role: 'assistant', content: [{ type: 'text', text: long('Yes') }, call('a'), call('b'), call('c')] },
  { role: 'user', content: [result('a', `{"x":"${long('y')}"}`), result('b', long('z')), result('c', '')] },
  { role: 'assistant', content: 'short' },
  { role: 'user', content: `${long(' ')}at last` },
];

/** The request that an adapter sends, and what it would have sent with the long texts in it. */
async function sentBy<Id extends keyof ProviderAccess>(id: Id, own: ProviderAccess[Id]) {
  const sent: HttpRequest[] = [];
  const http = {
    send: async (request: HttpRequest) => {
      const body = request.fillBody ? await request.fillBody(String(request.body)) : request.body;
      sent.push({ ...request, body });
      throw new Error('that is all');
    },
    close: () => {},
  } as unknown as HttpClient;
  const provider = await loadProvider(id, own, http);
  const { turns: short, ...texts } = standIn(turns, provider);
  const bodies: number[] = [];
  const fillBody = async (text: string) => {
    bodies.push(text.length);
    return fillText({ text, ...texts }).bytes;
  };
  const request = {
    model: 'm',
    signal: new AbortController().signal,
    parameters: { tools: [{ name: 'f' }] },
  };
  await provider.run({ ...request, turns }).catch(() => undefined);
  await provider.run({ ...request, turns: short, fillBody }).catch(() => undefined);
  const [whole, filled] = sent.map(({ body, headers }) => ({
    body: typeof body === 'string' ? body : new TextDecoder().decode(body),
    headers,
  }));
  return { whole, filled, bodies };
}

describe('a request with words in the place of its long texts', () => {
  it.each(Object.entries(settings).flatMap(([id, all]) => all.map((own) => [id, own] as const)))(
    'to %s (%j) -> the body is the same, and the SDK has written a small one',
    async (id, own) => {
      const { whole, filled, bodies } = await sentBy(id as 'openai', own as ProviderAccess['openai']);
      expect(whole?.body.length).toBeGreaterThan(20_000);
      expect(filled?.body).toBe(whole?.body);
      expect(bodies).toEqual([expect.any(Number)]);
    },
  );

  it('to Bedrock -> is signed with the digest and the length of all of it', async () => {
    const [own] = settings.bedrock;
    const { filled } = await sentBy('bedrock', own as ProviderAccess['bedrock']);
    const body = filled?.body ?? '';
    expect(filled?.headers['x-amz-content-sha256']).toBe(createHash('sha256').update(body).digest('hex'));
    expect(filled?.headers['content-length']).toBe(String(Buffer.byteLength(body)));
    expect(filled?.headers.authorization).toContain('x-amz-content-sha256');
  });

  it('whose caller writes a word of another request -> it stays as it is', () => {
    const [one, other] = [standIn(turns, {}), standIn(turns, {})];
    const text = JSON.stringify(`${other.mark}0.`);
    expect(Buffer.from(fillText({ text, mark: one.mark, texts: one.texts }).bytes).toString()).toBe(text);
  });
});
