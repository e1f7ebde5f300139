import { signal } from '@preact/signals';
import type { EventSourceMessage } from 'eventsource-parser';
import { EventSourceParserStream } from 'eventsource-parser/stream';
import type { CompletionToolCall, CompletionUsage } from '../../shared/contracts/completion-contract.ts';
import type { Problem } from '../../shared/contracts/contract.ts';
import { ApiError, open } from '../api.ts';
import { type PlaygroundMessage, type PlaygroundRequest, toStream, usesTools } from './request.ts';

/** The facts about a reply beside its text. */
interface Completion {
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
  /** The calls of tools, in their order. */
  readonly calls: readonly CompletionToolCall[];
  readonly firstTextMs?: number;
  readonly totalMs?: number;
  readonly completion?: Completion;
  readonly error?: unknown;
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
      const read = usesTools(request) ? readChunk : readEvent;
      for await (const message of await openStream(request, stopping.signal)) {
        const { firstTextMs = elapsed(), ...before } = this.progress.value ?? emptyProgress;
        const facts = read(message, before);
        const hasBegun = facts.text || facts.calls?.length;
        update({ ...facts, ...(facts.state ? { totalMs: elapsed() } : hasBegun && { firstTextMs }) });
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

const emptyProgress: ChatProgress = { state: 'running', text: '', calls: [] };

async function openStream(request: PlaygroundRequest, signal: AbortSignal) {
  const { path, ...options } = toStream(request);
  const { body } = await open(`/admin${path}`, { method: 'POST', ...options, signal });
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

/** Takes an event of a stream and the progress before it; throws what the chat failed with. */
type Reader = (message: EventSourceMessage, before: ChatProgress) => Partial<ChatProgress>;

const readEvent: Reader = ({ event, data }, { text }) => {
  const parsed = JSON.parse(data) as Completion & { response: string; delta: string };
  if (event === 'delta') return { text: text + parsed.delta };
  if (event === 'error') throw new ApiError(parsed as unknown as Problem);
  return event === 'done' ? { state: 'completed', text: parsed.response, completion: parsed } : {};
};

/** A chunk of OpenAI's API. */
interface Chunk {
  error?: { code: Problem['code']; message: string };
  model: string;
  choices: { delta: { content?: string; tool_calls?: CallPiece[] }; finish_reason: string | null }[];
  usage?: CompletionUsage | null;
}

/** The first piece of a call has its id and its name; the texts of all pieces are its arguments. */
type CallPiece = CompletionToolCall & { index: number };

const readChunk: Reader = ({ data }, { text, calls, completion }) => {
  if (data === '[DONE]') return { state: 'completed' };
  const { error, model, choices, usage } = JSON.parse(data) as Chunk;
  if (error) throw new ApiError({ ...noProblem, code: error.code, detail: error.message });
  const [choice] = choices;
  const [provider = '', ...names] = model.split('/');
  return {
    text: text + (choice?.delta.content ?? ''),
    calls: (choice?.delta.tool_calls ?? []).reduce<readonly CompletionToolCall[]>(addPiece, calls),
    completion: {
      provider,
      model: names.join('/'),
      finishReason: choice?.finish_reason ?? completion?.finishReason ?? '',
      ...(usage && { usage: { inputTokens: usage.prompt_tokens, outputTokens: usage.completion_tokens } }),
    },
  };
};

const noProblem = { type: 'about:blank', title: '', status: 502, requestId: '' };

function addPiece(calls: readonly CompletionToolCall[], { index, ...piece }: CallPiece) {
  const known = calls[index];
  const call = known ?? piece;
  const text = (known?.function.arguments ?? '') + piece.function.arguments;
  return calls.toSpliced(index, 1, { ...call, function: { ...call.function, arguments: text } });
}

/** The messages that go on with a reply: itself, and the result of each of its calls in their order. */
export const answerCalls = (
  { text, calls }: ChatProgress,
  results: readonly string[],
): PlaygroundMessage[] => [
  { role: 'assistant', content: text, tool_calls: calls },
  ...calls.map(({ id }, n) => ({ role: 'tool' as const, content: results[n] ?? '', tool_call_id: id })),
];
