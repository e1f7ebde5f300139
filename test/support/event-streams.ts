import { EventSourceParserStream } from 'eventsource-parser/stream';
import type { Message } from '../../shared/contracts/contract.js';
import { promptCanary } from './canaries.js';
import { authorization } from './deployment.js';

/** A chat that is read as it is written. */
export interface StreamCall {
  url: string;
  /** Of a stored chat whose stream is read; absent means a new chat. */
  chatId?: string;
  provider?: string;
  model?: string;
  messages?: Message[];
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** One event of a stream. */
export interface StreamEvent {
  id?: string | undefined;
  event?: string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: what a test expects of it, it says.
  data: any;
}

/** A stream as it arrives. */
export interface OpenStream {
  response: Response;
  events: AsyncIterator<StreamEvent, undefined>;
}

/** Asks for a stream; the response is there when its first event is, or when the chat has failed. */
export async function openStream(call: StreamCall): Promise<OpenStream> {
  const { url, chatId, provider = 'openai', model, messages, headers, signal } = call;
  const body = JSON.stringify({
    messages: messages ?? [{ role: 'user', content: `Hello, ${promptCanary}` }],
  });
  const common = { Authorization: authorization, Accept: 'text/event-stream' };
  const response = chatId
    ? await fetch(`${url}/chat/${chatId}`, { headers: { ...common, ...headers }, ...(signal && { signal }) })
    : await fetch(`${url}/chat`, {
        method: 'POST',
        headers: {
          ...common,
          'Content-Type': 'application/json',
          'X-LLM': provider,
          ...(model && { 'X-LLM-Model': model }),
          ...headers,
        },
        body,
        ...(signal && { signal }),
      });
  return { response, events: readEvents(response) };
}

/** The events of a response, as they arrive. */
export async function* readEvents(response: Response): AsyncGenerator<StreamEvent, undefined> {
  if (response.body === null) return;
  const parsed = response.body
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream());
  for await (const { id, event, data } of parsed) yield { id, event, data: JSON.parse(data) };
}

/** All that was read of a stream. */
export interface StreamReply {
  response: Response;
  /** The deltas joined. */
  text: string;
  deltas: StreamEvent[];
  /** `done` or `error`; undefined when the connection ended without either. */
  end: StreamEvent | undefined;
  /** Of the last delta. */
  lastEventId: string | undefined;
}

/** Reads a stream to its end, or until `enough` says so of the text so far. */
export async function readStream(
  { response, events }: OpenStream,
  enough: (text: string) => boolean = () => false,
): Promise<StreamReply> {
  const deltas: StreamEvent[] = [];
  let text = '';
  let end: StreamEvent | undefined;
  while (!enough(text)) {
    const { value } = await events.next();
    if (value === undefined) break;
    if (value.event !== 'delta') end = value;
    else {
      deltas.push(value);
      text += value.data.delta;
    }
  }
  return { response, text, deltas, end, lastEventId: deltas.at(-1)?.id };
}
