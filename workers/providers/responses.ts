import { APIError, type OpenAI } from 'openai';
import { z } from 'zod';
import { endReader, modelName, tokenCount, tokenCounts } from './answer-fields.js';
import { refuseError } from './chat-completions.js';
import { toJsonText } from './exact-json.js';
import type { ProviderRequest } from './provider.js';
import type { ReplyPart } from './provider-call.js';
import { toBody } from './responses-body.js';
import { jsonOf, readEvents } from './sdk-events.js';
import { toFetchOptions } from './sdk-fetch.js';

/**
 * A response, whole or as a stream, that OpenAI does not keep. Its items come in the order in which the model wrote
 * them. https://platform.openai.com/docs/api-reference/responses
 */
export const responses = (client: OpenAI, request: ProviderRequest, isStreamed: boolean) =>
  (isStreamed ? streamed : whole)(client, request);

async function* whole(client: OpenAI, request: ProviderRequest): AsyncGenerator<ReplyPart> {
  const fetchOptions = toFetchOptions(request);
  // Not by `responses.create`, whose types want an id of all that is sent back.
  const response = await client.post('/responses', { body: toBody(request), fetchOptions }).asResponse();
  const answer = wholeAnswer.parse(refuseError(JSON.parse(await response.text()), response.headers));
  const { reason, isWhole, ...counted } = toEnd(answer, answer.output.some(isRefusal));
  // Before the texts, with one of which the reading may end.
  yield counted;
  for (const [key, item] of reason === 'blocked' ? [] : answer.output.entries()) {
    yield beginItem(item, key);
    yield { thinking: thinkingIn(item), text: textIn(item) };
    yield endItem(item, key);
  }
  yield { reason, isWhole };
}

async function* streamed(client: OpenAI, request: ProviderRequest): AsyncGenerator<ReplyPart> {
  const body = { ...toBody(request), stream: true, stream_options: { include_obfuscation: false } };
  const fetchOptions = toFetchOptions(request);
  const response = await client.post('/responses', { body, fetchOptions }).asResponse();
  let isRefused = false;
  for await (const events of readEvents(response)) {
    for (const event of events) {
      const said = refuseError(jsonOf(event), response.headers);
      const { type } = anyEvent.parse(said);
      if (type === 'error' || type === 'response.failed') throw toError(said, response.headers);
      isRefused ||= type?.startsWith('response.refusal.') ?? false;
      const status = ends.get(type);
      yield status
        ? toEnd({ ...responseEvent.parse(said).response, status }, isRefused)
        : readPiece(type, said);
    }
  }
}

/** The events with which a reply ends, and what they say of it. */
const ends: ReadonlyMap<unknown, string> = new Map([
  ['response.completed', 'completed'],
  ['response.incomplete', 'incomplete'],
]);

/** The SDK's own error: of a response that failed, or of an event, which has its fields on top or in one of them. */
function toError(event: unknown, headers: Headers): APIError {
  const { response } = failedEvent.parse(event);
  return new APIError(undefined, response?.error ?? Object(event), undefined, headers);
}

/** The part that an event of this type has. Events of any other type are signs of life. */
function readPiece(type: string | null | undefined, event: unknown): ReplyPart {
  switch (type) {
    case 'response.created':
    case 'response.in_progress':
      return { model: responseEvent.parse(event).response.model };
    case 'response.output_item.added':
      return beginItem(...itemOf(event));
    case 'response.output_item.done':
      return endItem(...itemOf(event));
    case 'response.output_text.delta':
      return { text: deltaEvent.parse(event).delta };
    case 'response.function_call_arguments.delta': {
      const { delta, output_index: key = 0 } = deltaEvent.parse(event);
      return { call: { key, arguments: delta } };
    }
    case 'response.reasoning_summary_part.added':
      return { thinking: partEvent.parse(event).summary_index ? betweenTexts : '' };
    case 'response.reasoning_summary_text.delta':
    case 'response.reasoning_text.delta':
      return { thinking: deltaEvent.parse(event).delta };
    default:
      return {};
  }
}

const betweenTexts = '\n\n';

function itemOf(event: unknown): [item: Item, key: number] {
  const { item, output_index } = itemEvent.parse(event);
  return [item, output_index];
}

function beginItem({ type, phase, call_id: id, name }: Item, key: number): ReplyPart {
  switch (type) {
    case 'reasoning':
      return { thinking: '' };
    case 'message':
      return {
        isNewText: true,
        ...(phase && { opaque: { role: 'start', data: JSON.stringify({ phase }) } }),
      };
    case 'function_call':
      return { call: { key, id: id ?? undefined, name: name ?? undefined } };
    default:
      return {};
  }
}

/** Only here reasoning is complete: before, its content may be a part (`ResponseReasoningItem` of the SDK). */
function endItem({ type, status, ...item }: Item, key: number): ReplyPart {
  const { summary, encrypted_content, call_id: id, name } = item;
  if (type === 'reasoning' && encrypted_content)
    return { opaque: { data: JSON.stringify({ summary: summary ?? [], encrypted_content }) } };
  if (type !== 'function_call') return {};
  const call = { key, id: id ?? undefined, name: name ?? undefined };
  return { call: { ...call, preset: toJsonText(item.arguments), isEnded: status !== 'incomplete' } };
}

const thinkingIn = ({ type, summary, content }: Item): string | undefined =>
  type === 'reasoning' ? [...(summary ?? []), ...(content ?? [])].map(textOf).join(betweenTexts) : undefined;

const textIn = ({ type, content }: Item): string | undefined =>
  type === 'message' ? content?.map(textOf).join('') : undefined;

const textOf = ({ text }: { text?: string | null | undefined }): string => text ?? '';

const isRefusal = ({ content }: Item): boolean => content?.some(({ refusal }) => refusal) ?? false;

function toEnd({ status, incomplete_details: why, model, usage }: Answer, isRefused: boolean): ReplyPart {
  const end = readEnd(
    status === 'incomplete' ? (why?.reason ?? 'max_output_tokens') : (status ?? 'completed'),
  );
  const reason = isRefused ? 'blocked' : end;
  return { reason, isWhole: true, model, usage: toUsage(usage) };
}

/** The words of `ResponseStatus` and `IncompleteDetails` of the SDK; a new one is a cut. */
const readEnd = endReader({
  stop: ['completed'],
  length: ['max_output_tokens'],
  blocked: ['content_filter'],
  broken: ['failed', 'in_progress', 'cancelled', 'queued'],
});

const usage = tokenCounts({
  input_tokens: tokenCount,
  output_tokens: tokenCount,
  input_tokens_details: tokenCounts({ cached_tokens: tokenCount, cache_write_tokens: tokenCount }),
  output_tokens_details: tokenCounts({ reasoning_tokens: tokenCount }),
});

/** OpenAI counts what was read from its cache, and written to it, within the input. */
const toUsage = (counts: z.infer<typeof usage>): ReplyPart['usage'] =>
  counts && {
    inputTokens: counts.input_tokens,
    outputTokens: counts.output_tokens,
    cachedTokens: counts.input_tokens_details?.cached_tokens,
    cacheWriteTokens: counts.input_tokens_details?.cache_write_tokens,
    reasoningTokens: counts.output_tokens_details?.reasoning_tokens,
  };

const text = z.string().nullish();
const item = z.object({
  type: z.string(),
  status: text,
  /** Of a message. */
  phase: text,
  content: z.array(z.object({ type: z.string(), text, refusal: text })).nullish(),
  /** Of reasoning. */
  summary: z.array(z.object({ type: z.string(), text: z.string() })).nullish(),
  encrypted_content: text,
  /** Of a call. */
  call_id: text,
  name: text,
  arguments: z.unknown().optional(),
});
type Item = z.infer<typeof item>;

const answer = z.object({
  model: modelName,
  status: text,
  incomplete_details: z.object({ reason: text }).nullish(),
  usage,
});
type Answer = z.infer<typeof answer>;
const wholeAnswer = answer.extend({ output: z.array(item) });

const anyEvent = z.object({ type: text });
const responseEvent = z.object({ response: answer });
const failedEvent = z.object({ response: z.object({ error: z.unknown().optional() }).nullish() });
const itemEvent = z.object({ item, output_index: z.int() });
const partEvent = z.object({ summary_index: z.int().nullish() });
const deltaEvent = z.object({ delta: z.string(), output_index: z.int().optional() });
