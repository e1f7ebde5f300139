import { createApp } from '../../api/app.js';
import type { Answer, Question } from '../../api/gateway.js';
import { parseConfig } from '../../shared/config.js';
import { openQueueStore } from '../../shared/queue.js';
import { createRecordingLog } from './recording-log.js';
import { serve } from './serve.js';

/** The HTTP application alone: what gets through to the gateway is kept and answered at once. */
export interface ChatApp {
  readonly url: string;
  readonly questions: Question[];
  /** Everything logged so far. */
  logs(): string;
  post(call: { body?: string | Uint8Array; headers?: Record<string, string> }): Promise<Response>;
  close(): Promise<void>;
}

const authorization = `Basic ${btoa('user:secret')}`;

/** `answer` may throw what the gateway throws. */
export async function startChatApp({
  answer = () => hello,
}: {
  answer?: () => Answer;
} = {}): Promise<ChatApp> {
  const questions: Question[] = [];
  const recording = createRecordingLog();
  // Nothing listens on port 1: no part of these tests reaches the store.
  const config = parseConfig({ REDIS_URL: 'redis://127.0.0.1:1' }, 'migrate');
  const store = openQueueStore(config, recording.log);
  const app = createApp({
    config,
    gateway: {
      ask: async (question) => {
        questions.push(question);
        return answer();
      },
    },
    checkUser: (name, secret) => (secret === 'secret' ? { name } : undefined),
    store,
    linked: () => true,
    draining: () => false,
    log: recording.log,
  });
  const server = await serve(app);
  return {
    url: server.url,
    questions,
    logs: recording.text,
    post: ({ body = '{"messages":[{"content":"Hello"}]}', headers }) =>
      fetch(`${server.url}/chat`, {
        method: 'POST',
        headers: {
          Authorization: authorization,
          'Content-Type': 'application/json',
          'X-LLM': 'openai',
          ...headers,
        },
        body,
      }),
    close: async () => {
      await server.close();
      await store.close();
    },
  };
}

const hello: Answer = { kind: 'ok', text: 'Hello', model: 'm', queueMs: 0, providerMs: 0 };
