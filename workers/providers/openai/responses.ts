import { APIError, type OpenAI } from 'openai';
import { z } from 'zod';
import { jsonOf, readEvents, toFetchOptions, wholeBody } from '../http/sdk-fetch.js';
import type { ProviderRequest } from '../provider.js';
import { endReader, modelName, openAiUsage, tierName } from '../reply/answer-fields.js';
import { parseAnswer } from '../reply/exact-json.js';
import type { ReplyPart } from '../reply/provider-call.js';
import { refuseError } from './chat-completions.js';
import { toBody } from './responses-body.js';
import { betweenTexts, type Item, item, ResponseItems } from './responses-items.js';

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
  yield* readWhole(await response.text(), request, response.headers);
}

function readWhole(text: string, request: ProviderRequest, headers: Headers): Iterable<ReplyPart> {
  return readEnd(wholeAnswer.parse(refuseError(parseAnswer(text), headers)), new ResponseItems(request));
}

async function* streamed(client: OpenAI, request: ProviderRequest): AsyncGenerator<ReplyPart> {
  const body = { ...toBody(request), stream: true, stream_options: { include_obfuscation: false } };
  const fetchOptions = toFetchOptions(request);
  const response = await client.post('/responses', { body, fetchOptions }).asResponse();
  const items = new ResponseItems(request);
  let isRefused = false;
  for await (const events of readEvents(response)) {
    for (const event of events) {
      if (event.event === wholeBody) return yield* readWhole(event.data, request, response.headers);
      const json = refuseEvent(jsonOf(event), response.headers);
      const { type } = anyEvent.parse(json);
      isRefused ||= type?.startsWith('response.refusal.') ?? false;
      const [, status] = /^response\.(completed|incomplete)$/.exec(type ?? '') ?? [];
      if (status) yield* readEnd({ ...lastEvent.parse(json).response, status }, items, isRefused);
      else yield* readPiece(type, json, items);
    }
  }
}

/** Gives what an answer, or the last event of a stream, has that was not said before, and how it ends. */
function* readEnd(answer: WholeAnswer, items: ResponseItems, wasRefused = false): Iterable<ReplyPart> {
  const output = answer.output ?? [];
  const { reason, isWhole, ...counted } = toEnd(answer, wasRefused || output.some(isRefusal));
  // Before the texts, with one of which the reading may end.
  yield counted;
  for (const [index, item] of reason === 'blocked' ? [] : output.entries()) yield* items.end(item, index);
  yield* items.finish();
  yield { reason, isWhole };
}

/** Throws the SDK's own error for a failed response, or for an event that has its fields on top or in one of them. */
function refuseEvent(event: unknown, headers: Headers): unknown {
  const { type } = anyEvent.parse(refuseError(event, headers));
  if (type !== 'error' && type !== 'response.failed') return event;
  const { response } = failedEvent.parse(event);
  throw new APIError(undefined, response?.error ?? Object(event), undefined, headers);
}

/** The parts that an event of this type has. Events of any other type are signs of life. */
function readPiece(type: string | null | undefined, event: unknown, items: ResponseItems): ReplyPart[] {
  switch (type) {
    case 'response.created':
    case 'response.in_progress':
      return [{ model: responseEvent.parse(event).response.model }];
    case 'response.output_item.added':
      return [items.begin(...itemEvent.parse(event))];
    case 'response.output_item.done':
      return items.end(...itemEvent.parse(event));
    case 'response.output_text.delta':
      return [items.addPiece('message', pieceEvent.parse(event))];
    case 'response.output_text.done':
      return [items.addWhole('message', pieceEvent.parse(event))];
    case 'response.function_call_arguments.delta':
      return [items.addPiece('function_call', pieceEvent.parse(event))];
    case 'response.function_call_arguments.done':
      return [items.addWhole('function_call', pieceEvent.parse(event))];
    case 'response.reasoning_summary_part.added':
      return [{ thinking: partEvent.parse(event).summary_index ? betweenTexts : '' }];
    case 'response.reasoning_summary_text.delta':
    case 'response.reasoning_text.delta':
      return [items.addPiece('reasoning', pieceEvent.parse(event))];
    default:
      return [{}];
  }
}

const isRefusal = ({ content }: Item): boolean => content?.some(({ refusal }) => refusal) ?? false;

function toEnd(
  { status, incomplete_details: why, model, service_tier: tier, usage }: Answer,
  isRefused: boolean,
): ReplyPart {
  const word = status === 'incomplete' ? (why?.reason ?? 'max_output_tokens') : (status ?? 'completed');
  return { reason: isRefused ? 'blocked' : meaningOf(word), isWhole: true, model, tier, usage };
}

/** The words of `ResponseStatus` and `IncompleteDetails` of the SDK; a new one is a cut. */
const meaningOf = endReader({
  stop: ['completed'],
  length: ['max_output_tokens'],
  blocked: ['content_filter'],
  broken: ['failed', 'in_progress', 'cancelled', 'queued'],
});

const text = z.string().nullish();
const answer = z.object({
  model: modelName,
  status: text,
  incomplete_details: z.object({ reason: text }).nullish(),
  service_tier: tierName,
  usage: openAiUsage('input', 'output'),
});
type Answer = z.infer<typeof answer>;
const wholeAnswer = answer.extend({ output: z.array(item) });
/** Its items may have been said before, so no reply fails over them. */
const lastAnswer = answer.extend({ output: z.array(item).nullish().catch(undefined) });
type WholeAnswer = z.infer<typeof lastAnswer>;

const anyEvent = z.object({ type: text });
const responseEvent = z.object({ response: answer });
const lastEvent = z.object({ response: lastAnswer });
const failedEvent = z.object({ response: z.object({ error: z.unknown().optional() }).nullish() });
const itemEvent = z
  .object({ item, output_index: z.int() })
  .transform((event) => [event.item, event.output_index] as const);
const partEvent = z.object({ summary_index: z.int().nullish() });
/** A piece of an item, or all of a text or of the arguments. */
const pieceEvent = z.object({
  output_index: z.int().default(0),
  content_index: z.int().default(0),
  delta: z.string().default(''),
  text,
  arguments: z.unknown().optional(),
});
