import { expect } from 'vitest';
import { codeOf } from './support/balance.js';
import type { Books } from './support/books.js';
import { eventually } from './support/expectations.js';
import { fault } from './support/fault.js';

/** A chat that fails at OpenAI goes to Anthropic. */
const ask = (books: Books, model: string, next = model) =>
  books.ask({ model, headers: { 'X-LLM-Fallback': `anthropic/${next}` } });

fault(
  { id: 'N1', injected: 'a provider that refuses connections, 40 chats at once with a fallback' },
  async (books) => {
    await books.start({
      variables: {
        OPENAI_BASE_URL: 'http://127.0.0.1:1/v1',
        OPENAI_CONCURRENCY: '5',
        CHAT_TIMEOUT_MS: '40000',
      },
    });
    const replies = await Promise.all(
      Array.from({ length: 40 }, (_, n) => ask(books, `sim-echo@N1-${n}`).reply),
    );
    expect(new Set(replies.map(codeOf))).toEqual(new Set(['ok']));
    const providers = replies.map(({ headers }) => headers.get('x-llm-provider'));
    expect(new Set(providers)).toEqual(new Set(['anthropic']));
    return `${replies.length} × 200 by the fallback, those too that waited when the breaker opened`;
  },
);

fault(
  {
    id: 'N2',
    injected: 'kill -9 of the only worker of a provider; one chat with a fallback runs, one waits',
  },
  async (books) => {
    const variables = { WORKER_PROVIDERS: 'openai', OPENAI_CONCURRENCY: '1', CHAT_TIMEOUT_MS: '40000' };
    const { workers, startWorker } = await books.start({ variables });
    await startWorker({ WORKER_PROVIDERS: 'anthropic' });
    const running = ask(books, 'sim-hang@N2-running', 'sim-echo@N2-running');
    await running.arrived();
    const waiting = ask(books, 'sim-echo@N2-waiting');
    await eventually(async () => expect(await books.jobs.unfinished()).toBe(2));
    await books.kill(workers[0]);
    const replies = await Promise.all([running.reply, waiting.reply]);
    expect(replies.map(codeOf)).toEqual(['ok', 'ok']);
    for (const { headers } of replies) expect(headers.get('x-llm-provider')).toBe('anthropic');
    return '200 by the fallback, both';
  },
);
