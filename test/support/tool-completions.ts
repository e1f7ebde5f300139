import { expect } from 'vitest';
import { promptCanary } from './canaries.js';
import { authorization, type Deployment } from './deployment.js';

/** A call as OpenAI's API shows it. */
export interface ToolCall {
  id: string;
  type: 'function';
  function: { name: string; arguments: string };
  extra_content?: unknown;
}

/** A chat completion, whole or put together from its chunks. */
export interface ReadToolCompletion {
  status: number;
  headers: Headers;
  /** Null where the reply has no text. */
  content: string | null | undefined;
  calls: ToolCall[];
  finish: string | null | undefined;
  /** `X-Ignored-Fields`. */
  ignored: string | null;
  /** Of the response, or of a stream that had begun. */
  error: { code: string; param: string | null; message: string } | undefined;
  /** The object of a reply that was not streamed. */
  body: Record<string, unknown> | undefined;
}

interface Chunk {
  error?: ReadToolCompletion['error'];
  choices?: {
    message?: { content: string | null; tool_calls?: ToolCall[] };
    delta?: { content?: string | null; tool_calls?: (Partial<ToolCall> & { index: number })[] };
    finish_reason?: string | null;
  }[];
}

/** The tools of most tests. */
export const functionTool = (name: string, parameters?: object, more: object = {}) => ({
  type: 'function' as const,
  function: {
    name,
    description: `Tells of ${name}, ${promptCanary}.`,
    ...(parameters && { parameters }),
    ...more,
  },
});

export const weatherTool = functionTool('weather', {
  type: 'object',
  properties: {
    city: { type: 'string', title: promptCanary },
    unit: { enum: ['celsius', 'kelvin'], type: 'string' },
  },
  required: ['city', 'unit'],
  additionalProperties: false,
});
export const clockTool = functionTool('clock');

export interface AskOptions {
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** Called with all of the response that has come, whenever more of it has. */
  onText?: (text: string) => void;
}

/** Asks for a chat completion, and reads it to its end. */
export async function askWithTools(
  { url }: Pick<Deployment, 'url'>,
  body: object,
  { headers = {}, signal, onText }: AskOptions = {},
): Promise<ReadToolCompletion> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { Authorization: authorization, 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify({ messages: [{ role: 'user', content: 'Hello' }], ...body }),
    ...(signal && { signal }),
  });
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream');
  let text = '';
  for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += piece;
    onText?.(text);
  }
  const read = isStream ? joinChunks(text) : wholeOf(JSON.parse(text));
  return {
    ...{ status: response.status, headers: response.headers },
    ...read,
    ignored: response.headers.get('x-ignored-fields'),
  };
}

type Read = Omit<ReadToolCompletion, 'status' | 'headers' | 'ignored'>;

function wholeOf(body: Record<string, unknown> & Chunk): Read {
  const { choices: [choice] = [], error } = body;
  const { content, tool_calls: calls = [] } = choice?.message ?? {};
  // OpenAI's answers leave the field out where there are no calls.
  expect(choice?.message?.tool_calls?.length).not.toBe(0);
  return { content, calls, finish: choice?.finish_reason, error, body };
}

/** Checks the rules for the chunks of calls as well. */
function joinChunks(text: string): Read {
  const events = text.split('\n\n').map((event) => event.replace(/^data: /, ''));
  const chunks = events.filter((event) => event.startsWith('{')).map((event): Chunk => JSON.parse(event));
  const calls: ToolCall[] = [];
  let content = '';
  for (const { choices: [choice] = [] } of chunks) {
    content += choice?.delta?.content ?? '';
    for (const { index, ...piece } of choice?.delta?.tool_calls ?? []) {
      const begun = calls[index];
      if (begun === undefined) {
        expect(index).toBe(calls.length);
        expect(piece).toMatchObject({
          ...{ id: expect.any(String), type: 'function' },
          function: { name: expect.any(String), arguments: '' },
        });
        calls.push(structuredClone(piece) as ToolCall);
      } else {
        expect(piece).toEqual({ function: { arguments: expect.stringMatching(/./s) } });
        expect(index).toBe(calls.length - 1);
        begun.function.arguments += piece.function?.arguments;
      }
    }
  }
  const error = chunks.find((chunk) => chunk.error)?.error;
  expect(events.includes('[DONE]')).toBe(error === undefined);
  const finish = chunks.flatMap(({ choices = [] }) => choices).at(-1)?.finish_reason;
  return { content: content === '' ? null : content, calls, finish, error, body: undefined };
}

/** Whether a part of a call's arguments is in the text of a stream. */
export const hasBegunCall = (text: string): boolean => /"function":\{"arguments":"[^"]/.test(text);

/** Of each call its name, and its arguments as an object, which they have to be. */
export const callsIn = ({ calls }: Pick<ReadToolCompletion, 'calls'>) =>
  calls.map(({ function: { name, arguments: text } }) => [name, JSON.parse(text)] as const);
