import { signal } from '@preact/signals';
import { EventSourceParserStream } from 'eventsource-parser/stream';
import type { Message, Problem } from '../../shared/contract.ts';
import { ApiError, open } from '../api.ts';

/** The request. Empty texts mean the server's defaults. */
export interface PlaygroundRequest {
  readonly provider: string;
  readonly model: string;
  readonly fallback: string;
  /** Whole seconds. */
  readonly wait: string;
  readonly messages: readonly Message[];
}

/** The facts about a reply beside its text: the `done` event of the stream. */
interface Completion {
  response: string;
  finishReason: string;
  provider: string;
  model: string;
  usage?: { inputTokens?: number; outputTokens?: number };
  attempts?: { provider: string; model?: string; code: string }[];
}

/** How far a chat has come. Times are in milliseconds since it was sent, as this browser measured them. */
export interface ChatProgress {
  readonly state: 'running' | 'completed' | 'failed' | 'stopped';
  readonly text: string;
  readonly firstTextMs?: number;
  readonly totalMs?: number;
  readonly completion?: Completion;
  readonly error?: unknown;
}

/** The headers of the API for a request; `Accept` is for a stream. */
export function headersOf({ provider, model, fallback, wait }: PlaygroundRequest): Record<string, string> {
  return {
    'X-LLM': provider,
    ...(model.trim() && { 'X-LLM-Model': model.trim() }),
    ...(fallback.trim() && { 'X-LLM-Fallback': fallback.trim() }),
    ...(wait.trim() && { Prefer: `wait=${wait.trim()}` }),
  };
}

/** One chat at a time, read as it is written. */
export class PlaygroundChat {
  readonly progress = signal<ChatProgress | undefined>(undefined);
  #stopping: AbortController | undefined;

  /** Resolves at every end of the chat; never rejects. */
  async send(request: PlaygroundRequest): Promise<void> {
    this.stop();
    const stopping = new AbortController();
    this.#stopping = stopping;
    const startedAt = performance.now();
    const elapsed = () => performance.now() - startedAt;
    const update = (facts: Partial<ChatProgress>) => {
      if (this.#stopping === stopping)
        this.progress.value = { ...emptyProgress, ...this.progress.value, ...facts };
    };
    this.progress.value = emptyProgress;
    try {
      for await (const { event, data } of await openStream(request, stopping.signal)) {
        const parsed = JSON.parse(data) as unknown;
        if (event === 'delta') {
          const { text, firstTextMs = elapsed() } = this.progress.value ?? emptyProgress;
          update({ text: text + (parsed as { delta: string }).delta, firstTextMs });
        } else if (event === 'error') throw new ApiError(parsed as Problem);
        else if (event === 'done') update(describeEnd(parsed as Completion, elapsed()));
      }
      if (this.progress.value?.state === 'running') throw new ApiError(undefined);
    } catch (error) {
      update({ state: stopping.signal.aborted ? 'stopped' : 'failed', error, totalMs: elapsed() });
    }
  }

  /** The server cancels the call of the provider. */
  stop(): void {
    this.#stopping?.abort();
  }
}

const emptyProgress: ChatProgress = { state: 'running', text: '' };

const describeEnd = (completion: Completion, totalMs: number): Partial<ChatProgress> => ({
  ...{ state: 'completed', text: completion.response, completion, totalMs },
});

async function openStream(request: PlaygroundRequest, signal: AbortSignal) {
  const { body } = await open('/admin/chat', {
    method: 'POST',
    headers: { ...headersOf(request), Accept: 'text/event-stream' },
    json: { messages: request.messages },
    signal,
  });
  if (body === null) throw new ApiError(undefined);
  return readEvents(
    body
      .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array<ArrayBuffer>>)
      .pipeThrough(new EventSourceParserStream()),
  );
}

/** Not every browser iterates over a stream by itself. */
async function* readEvents<T>(stream: ReadableStream<T>): AsyncGenerator<T> {
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}
