import { afterEach, describe, expect, it, vi } from 'vitest';
import { answerCalls, PlaygroundChat } from '../../../console/playground/chat.ts';

const request = {
  ...{ provider: 'openai', model: ' gpt ', fallback: '', wait: '' },
  tool: { name: '', description: '', parameters: '' },
  messages: [{ role: 'user' as const, content: 'Hello' }],
};
const sent: { path: string; init: RequestInit }[] = [];

/** Has the server answer with these events. */
const answer = (...events: [name: string, data: object][]): void =>
  answerWith(events.map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`));

function answerWith(texts: readonly string[]): void {
  const text = texts.join('');
  const headers = { 'Content-Type': 'text/event-stream' };
  vi.stubGlobal('fetch', async (path: string, init: RequestInit) => {
    sent.push({ path, init });
    return new Response(text, { headers });
  });
}
afterEach(() => {
  sent.length = 0;
  vi.unstubAllGlobals();
});

describe('PlaygroundChat', () => {
  it('reads the reply as it is written, and says how it ended', async () => {
    const done = { response: 'Hi there', finishReason: 'stop', provider: 'openai', model: 'gpt' };
    answer(['delta', { delta: 'Hi' }], ['delta', { delta: ' there' }], ['done', done]);
    const chat = new PlaygroundChat();
    const seen: string[] = [];
    chat.progress.subscribe((progress) => progress && seen.push(progress.text));
    await chat.send(request);
    expect(new Set(seen)).toEqual(new Set(['', 'Hi', 'Hi there']));
    expect(chat.progress.value).toMatchObject({ state: 'completed', text: 'Hi there', completion: done });
    expect(sent[0]?.path).toBe('/admin/chat');
    expect(sent[0]?.init.headers).toMatchObject({
      'X-LLM': 'openai',
      'X-LLM-Model': 'gpt',
      Accept: 'text/event-stream',
    });
  });

  it.each<[string, string, [string, object][]]>([
    ['fails', 'provider_error', [['error', { code: 'provider_error', detail: 'It broke.' }]]],
    ['breaks off', 'unreachable', []],
  ])('a reply that %s -> what has come is kept, and is no whole reply', async (_how, code, end) => {
    answer(['delta', { delta: 'Hi' }], ...end);
    const chat = new PlaygroundChat();
    await chat.send(request);
    expect(chat.progress.value).toMatchObject({ state: 'failed', text: 'Hi', error: { code } });
  });

  it('can be stopped', async () => {
    vi.stubGlobal(
      'fetch',
      (_path: string, { signal }: RequestInit) =>
        new Promise((_resolve, reject) => {
          signal?.addEventListener('abort', () => reject(signal.reason));
        }),
    );
    const chat = new PlaygroundChat();
    const ended = chat.send(request);
    chat.stop();
    await ended;
    expect(chat.progress.value).toMatchObject({ state: 'stopped', text: '' });
  });
});

describe('PlaygroundChat, with a tool', () => {
  const parameters = { type: 'object', properties: { city: { type: 'string' } } };
  const withTool = {
    ...request,
    tool: { name: 'weather', description: 'The weather', parameters: JSON.stringify(parameters) },
  };
  const chunk = (delta: object, more: object = {}) =>
    `data: ${JSON.stringify({ model: 'vertexai/a/b', choices: [{ delta, finish_reason: null, ...more }] })}\n\n`;
  const piece = (text: string, more: object = {}) => ({ index: 0, function: { arguments: text }, ...more });
  const extra_content = { google: { thought_signature: 'signed' } };
  const signed = { ...piece('', { id: 'c1', type: 'function', extra_content }), index: 1 };
  const chunks = [
    chunk({ role: 'assistant', content: '' }),
    chunk({ content: 'Let me see.' }),
    chunk({
      tool_calls: [piece('', { id: 'c0', type: 'function', function: { name: 'weather', arguments: '' } })],
    }),
    chunk({ tool_calls: [piece('{"city":')] }),
    chunk({ tool_calls: [piece('"Bonn"}')] }),
    chunk({ tool_calls: [{ ...signed, function: { name: 'time', arguments: '{}' } }] }),
    chunk({}, { finish_reason: 'tool_calls' }),
    `data: ${JSON.stringify({ model: 'vertexai/a/b', choices: [], usage: { prompt_tokens: 3, completion_tokens: 5 } })}\n\n`,
  ];
  const calls = [
    { id: 'c0', type: 'function', function: { name: 'weather', arguments: '{"city":"Bonn"}' } },
    { id: 'c1', type: 'function', extra_content, function: { name: 'time', arguments: '{}' } },
  ];

  it('asks OpenAI’s API, and puts the pieces of its calls together', async () => {
    answerWith([...chunks, 'data: [DONE]\n\n']);
    const chat = new PlaygroundChat();
    await chat.send(withTool);
    expect(chat.progress.value).toMatchObject({
      ...{ state: 'completed', text: 'Let me see.', calls },
      completion: {
        ...{ provider: 'vertexai', model: 'a/b', finishReason: 'tool_calls' },
        usage: { inputTokens: 3, outputTokens: 5 },
      },
    });
    expect(sent[0]?.path).toBe('/admin/v1/chat/completions');
    expect(JSON.parse(String(sent[0]?.init.body))).toEqual({
      ...{ model: 'openai/gpt', messages: request.messages },
      ...{ stream: true, stream_options: { include_usage: true } },
      tools: [{ type: 'function', function: { name: 'weather', description: 'The weather', parameters } }],
    });
  });

  it('sends the results with the calls as they came, also when the tool is gone from the form', async () => {
    answerWith([...chunks, 'data: [DONE]\n\n']);
    const chat = new PlaygroundChat();
    await chat.send(withTool);
    const progress = chat.progress.value;
    if (progress === undefined) return expect.unreachable();
    const answers = answerCalls(progress, ['Sunny', '12:00']);
    await chat.send({ ...request, messages: [...request.messages, ...answers] });
    expect(JSON.parse(String(sent[1]?.init.body)).messages).toEqual([
      ...request.messages,
      { role: 'assistant', content: 'Let me see.', tool_calls: calls },
      { role: 'tool', content: 'Sunny', tool_call_id: 'c0' },
      { role: 'tool', content: '12:00', tool_call_id: 'c1' },
    ]);
  });

  it.each([
    [
      'with an error',
      [`data: ${JSON.stringify({ error: { message: 'It broke.', code: 'provider_error' } })}\n\n`],
    ],
    ['by breaking off', []],
  ])('does not take a stream that ends %s for a whole reply', async (_how, end) => {
    answerWith([...chunks.slice(0, 4), ...end]);
    const chat = new PlaygroundChat();
    await chat.send(withTool);
    const code = end.length > 0 ? 'provider_error' : 'unreachable';
    expect(chat.progress.value).toMatchObject({ state: 'failed', text: 'Let me see.', error: { code } });
  });
});
