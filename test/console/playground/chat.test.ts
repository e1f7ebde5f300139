import { afterEach, describe, expect, it, vi } from 'vitest';
import { PlaygroundChat } from '../../../console/playground/chat.ts';

const request = {
  ...{ provider: 'openai', model: ' gpt ', fallback: '', wait: '' },
  messages: [{ content: 'Hello' }],
};
const sent: { path: string; init: RequestInit }[] = [];

/** Has the server answer with these events. */
function answer(...events: [name: string, data: object][]): void {
  const text = events.map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`).join('');
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

  it('keeps what has come when the reply fails', async () => {
    answer(['delta', { delta: 'Hi' }], ['error', { code: 'provider_error', detail: 'It broke.' }]);
    const chat = new PlaygroundChat();
    await chat.send(request);
    expect(chat.progress.value).toMatchObject({
      state: 'failed',
      text: 'Hi',
      error: { code: 'provider_error' },
    });
  });

  it('does not take a stream that breaks off for a whole reply', async () => {
    answer(['delta', { delta: 'Hi' }]);
    const chat = new PlaygroundChat();
    await chat.send(request);
    expect(chat.progress.value).toMatchObject({ state: 'failed', error: { code: 'unreachable' } });
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
