import { expect } from 'vitest';
import type { ProviderId } from '../../shared/contracts/contract.js';
import {
  type ImagePart,
  type OpaqueRole,
  type Part,
  partsOf,
  type TextPart,
  type Turn,
  textOf,
  textOfResult,
} from '../../shared/conversation.js';
import { startPlaying } from './playing-provider.js';
import type { ProviderCommand } from './replies.js';

/** The five APIs that the adapters speak, of which the first two are OpenAI's. */
export const apis = ['chat', 'responses', 'anthropic', 'bedrock', 'vertexai'] as const;
export type Api = (typeof apis)[number];

/** Adapters of a server that fails each request; gives the body that one of them sends, as it is written. */
export async function startApis() {
  const [first, byResponses] = [await startPlaying(), await startPlaying('openai by responses')];
  const failing = { status: 500, whole: '{}', events: [] };
  return async (api: Api, asked: Omit<ProviderCommand, 'model'>): Promise<string> => {
    const { play, sent } = api === 'responses' ? byResponses : first;
    const provider: ProviderId = api === 'chat' || api === 'responses' ? 'openai' : api;
    await expect(play(provider, failing, asked)).rejects.toThrow('provider_error');
    return sent();
  };
}

export const turn = (role: Turn['role'], content: Turn['content']): Turn => ({ role, content });
/** Turns of the assistant and of the user. */
export const turnsOf = (...contents: Turn['content'][]): Turn[] =>
  contents.map((content, n) => turn(n % 2 === 0 ? 'assistant' : 'user', content));
export const hello = turn('user', 'Hello');
export const talk = (...contents: Turn['content'][]): Turn[] => [hello, ...turnsOf(...contents)];

export const said = (text: string): TextPart => ({ type: 'text', text });
export const call = (id: string, name = 'weather', json = '{"city":"Bern"}'): Part => {
  return { type: 'tool_call', id, name, arguments: json };
};
export const result = (
  callId: string,
  content: string | (TextPart | ImagePart)[] = callId,
  isError?: boolean,
): Part => {
  return { type: 'tool_result', callId, content, ...(isError && { isError }) };
};
/** A part as the tape keeps it, of the model that is asked; null as earlier releases kept it. */
export const opaque = (
  provider: ProviderId,
  data: unknown,
  model: string | null = 'm',
  role?: OpaqueRole,
) => {
  const text = typeof data === 'string' ? data : JSON.stringify(data);
  return { type: 'opaque', provider, data: text, ...(model && { model }), ...(role && { role }) } as Part;
};

type Block = Record<string, unknown>;
/** A block in the form of one API, which no table translates. */
export const raw = (block: Block): Part => ({ type: 'raw', block }) as never;

type Image = Extract<Part, { type: 'image' }>;
const urlOf = (image: Image) => ('url' in image ? image.url : `data:${image.mediaType};base64,${image.data}`);
const sourceOf = (image: Image) =>
  'url' in image
    ? { type: 'url', url: image.url }
    : { type: 'base64', media_type: image.mediaType, data: image.data };

/** The blocks in the data of an opaque part, which has several of them without a model. */
const listOf = (data: string): Block[] => ([JSON.parse(data)] as Block[][]).flat();

type Written = Block | Block[] | false | undefined;
type Blocks = { [Type in Part['type']]?: (part: Extract<Part, { type: Type }>) => Written };
/** How each API writes a part. One that it has no block for is left out. */
const blocks: Record<Api, Blocks> = {
  chat: {
    text: ({ text }) => ({ type: 'text', text }),
    image: (image) => ({ type: 'image_url', image_url: { url: urlOf(image) } }),
    tool_call: ({ id, name, ...own }) => ({
      id,
      type: 'function',
      function: { name, arguments: own.arguments },
    }),
    tool_result: ({ callId, content }) => ({ role: 'tool', tool_call_id: callId, content }),
  },
  responses: {
    text: ({ text }) => ({ type: 'input_text', text }),
    image: (image) => ({ type: 'input_image', image_url: urlOf(image), detail: 'auto' }),
    tool_call: ({ id, ...own }) => ({ ...own, type: 'function_call', call_id: id }),
    tool_result: ({ callId, content }) => ({
      type: 'function_call_output',
      call_id: callId,
      output: inResult('responses', content),
    }),
  },
  anthropic: {
    text: ({ text }) => ({ type: 'text', text }),
    image: (image) => ({ type: 'image', source: sourceOf(image) }),
    tool_call: ({ id, name, ...own }) => ({ type: 'tool_use', id, name, input: JSON.parse(own.arguments) }),
    tool_result: ({ type, callId, content, isError }) => {
      const own = { tool_use_id: callId, content: inResult('anthropic', content) };
      return { type, ...own, ...(isError && { is_error: true }) };
    },
    opaque: ({ provider, data }) => provider === 'anthropic' && listOf(data),
  },
  bedrock: {
    text: ({ text }) => ({ text }),
    image: (image) =>
      'url' in image
        ? undefined
        : { image: { format: image.mediaType.slice('image/'.length), source: { bytes: image.data } } },
    tool_call: ({ id, name, ...own }) => ({
      toolUse: { toolUseId: id, name, input: JSON.parse(own.arguments) },
    }),
    tool_result: ({ callId, content, isError }) => {
      const status = isError && { status: 'error' };
      const blocks = write('bedrock', partsOf({ content }));
      return { toolResult: { toolUseId: callId, content: blocks, ...status } };
    },
    opaque: ({ provider, data }) =>
      provider === 'bedrock' && listOf(data).map((reasoningContent) => ({ reasoningContent })),
  },
  vertexai: {
    text: ({ text }) => ({ text }),
    image: (image) =>
      'url' in image ? undefined : { inlineData: { mimeType: image.mediaType, data: image.data } },
    tool_call: ({ name, ...own }) => ({ functionCall: { name, args: JSON.parse(own.arguments) } }),
    tool_result: ({ callId, content, isError }) => {
      const response = { [isError ? 'error' : 'output']: textOfResult({ content }) };
      const parts = typeof content !== 'string' && write('vertexai', content.filter(isImage));
      return { functionResponse: { name: callId, ...(parts && { parts }), response } };
    },
  },
};

const isImage = ({ type }: Part) => type === 'image';
const inResult = (api: Api, content: string | readonly Part[]) =>
  typeof content === 'string' ? content : write(api, content);

/** Parts as an API writes them. */
export const write = (api: Api, parts: readonly Part[]): Block[] =>
  parts.flatMap<Block>((part) => {
    const { block } = part as { block?: Block };
    const writer = blocks[api][part.type] as ((part: Part) => Written) | undefined;
    return block ?? (writer?.(part) || []);
  });

/** A conversation that fits an API, as it is written there. */
export function written(api: Api, turns: readonly Turn[]): Block[] {
  if (api === 'vertexai') return toContents(turns);
  return turns.flatMap(({ role, content }) => {
    if (api === 'bedrock') return [{ role, content: write(api, partsOf({ content })) }];
    if (typeof content === 'string') return [{ role, content }];
    if (api === 'anthropic') return [{ role, content: write(api, content) }];
    if (role === 'system') return [{ role, content: textOf({ content }) }];
    if (role === 'user') return toMessages(api, content);
    return api === 'chat' ? [toMessage(content)] : content.flatMap(toItem);
  });
}

const isResult = ({ type }: Part) => type === 'tool_result';

function toMessages(api: Api, parts: readonly Part[]): Block[] {
  const content = parts.filter((part) => !isResult(part));
  const results = write(api, parts.filter(isResult));
  if (content.length === 0 && results.length > 0) return results;
  return [...results, { role: 'user', content: write(api, content) }];
}

/** All of a turn as one message, with fields of its own. */
function toMessage(parts: readonly Part[]): Block {
  const calls = parts.filter(({ type }) => type === 'tool_call');
  const fields = parts.filter((part) => 'block' in part);
  const message = { role: 'assistant', content: textOf({ content: parts }) || null };
  return Object.assign(message, calls[0] && { tool_calls: write('chat', calls) }, ...write('chat', fields));
}

const toItem = (part: Part): Block[] =>
  part.type === 'text' ? [{ role: 'assistant', content: part.text }] : write('responses', [part]);

/** A result has the name of its call, and no id. Where no part of a turn is signed, the first call is. */
function toContents(turns: readonly Turn[]): Block[] {
  const named = turns.flatMap(partsOf).filter((part) => part.type === 'tool_call');
  const nameOf = (callId: string) => named.find(({ id }) => id === callId)?.name ?? 'weather';
  return turns.flatMap(({ role, content }) => {
    const given = partsOf({ content });
    if (role === 'assistant') return [{ role: 'model', parts: signFirst(write('vertexai', given)) }];
    const results = given.filter(isResult).map((part) => ({ ...part, callId: nameOf(Object(part).callId) }));
    const kinds = [results as Part[], given.filter((part) => !isResult(part))];
    return kinds.flatMap((parts) => (parts[0] ? [{ role, parts: write('vertexai', parts) }] : []));
  });
}

/** Stands for a signature that is missing. */
export const skipped = 'skip_thought_signature_validator';

function signFirst(parts: Block[]): Block[] {
  const isSigned = parts.some((part) => 'thoughtSignature' in part);
  const first = isSigned ? undefined : parts.find((part) => 'functionCall' in part);
  return parts.map((part) => (part === first ? { ...part, thoughtSignature: skipped } : part));
}
