import type Anthropic from '@anthropic-ai/sdk';
import { APIError } from '@anthropic-ai/sdk';
import { z } from 'zod';
import { readJson } from '../../../shared/json/json.js';
import type { HttpClient } from '../http/http-client.js';
import { createSdkFetch, readEvents, toFetchOptions, wholeBody } from '../http/sdk-fetch.js';
import type { ProviderRequest, WrittenBody } from '../provider.js';
import { laterCounts } from '../reply/answer-fields.js';
import { parseAnswer, toJsonText } from '../reply/exact-json.js';
import type { ReplyPart } from '../reply/provider-call.js';
import { refusalOf, streamEvent, toUsage, type UsageCounts } from './answer.js';

/** Requests of clients that speak the Messages API: they go to Anthropic, and their replies come back, as they are. */

type BodyRequest = ProviderRequest & { body: WrittenBody };

export const isWritten = (request: ProviderRequest): request is BodyRequest => request.body !== undefined;

/** Sends the body by the SDK's own address, credentials and `fetch`, in the version that the client has asked for. */
export function createWrittenCall(client: Anthropic, http: HttpClient) {
  const send = createSdkFetch(http);
  const builder = client as unknown as {
    buildRequest(options: object): Promise<{ url: string; req: { headers: Headers } }>;
  };
  const building = () =>
    builder.buildRequest({ method: 'post', path: '/v1/messages', body: {}, fetchOptions: {} });
  return async function* call(request: BodyRequest): AsyncGenerator<ReplyPart> {
    const { url, req } = await building();
    const { version, features } = request.body;
    const headers = new Headers(req.headers);
    headers.set('content-type', 'application/json');
    headers.set('anthropic-version', version);
    if (features.length > 0) headers.set('anthropic-beta', features.join(','));
    const init = { method: 'POST', headers, body: toText(request), ...toFetchOptions(request) };
    const response = await send(url, init);
    if (!response.ok) throw errorOf(response, await response.text());
    yield* new WrittenReply(request).read(response);
  };
}

const errorOf = (response: Response, text: string): APIError => {
  const { headers, status } = response;
  const error = readJson(text);
  return APIError.generate(
    status,
    (error ?? undefined) as object | undefined,
    error ? undefined : text,
    headers,
  );
};

/** The SDK's own error for one that comes as an event. */
const eventError = (json: { error?: { type?: Anthropic.ErrorType } }, { headers }: Response): APIError =>
  new APIError(undefined, json, undefined, headers, json.error?.type);

/** The body with what its pool decides. A budget of thinking must be below the limit of tokens. */
function toText({ model, maxOutputTokens = 0, user, body }: BodyRequest): string {
  const own = [
    `"model":${JSON.stringify(model)}`,
    `"max_tokens":${maxOutputTokens}`,
    '"stream":true',
    ...(body.thinking === undefined ? [] : [`"thinking":${withinLimit(body.thinking, maxOutputTokens)}`]),
    ...metadataOf(body, user),
  ];
  return `{${own.join()},${body.text.slice(1)}`;
}

function withinLimit(text: string, maxTokens: number): string {
  const { data } = budgeted.safeParse(readJson(text));
  if (data === undefined || data.budget_tokens < maxTokens) return text;
  return JSON.stringify({ ...data, budget_tokens: maxTokens - 1 });
}

const budgeted = z.looseObject({ budget_tokens: z.number() });

function metadataOf({ metadata }: WrittenBody, user: string | undefined): string[] {
  if (user !== undefined) return [`"metadata":${JSON.stringify({ user_id: user })}`];
  return metadata === undefined ? [] : [`"metadata":${metadata}`];
}

type Json = Record<string, unknown>;

interface OpenBlock {
  readonly type: string;
  readonly first: Json;
  readonly deltas: Json[];
  signature: string;
  /** Whether it is a text with deltas that are none. */
  hasOwnDeltas: boolean;
}

/**
 * The parts of a reply, from which its client is written the same events again. Texts, thinking and calls are those of
 * the tape. All else is opaque: `start` has the message without its content, `block` a block with its deltas, or the
 * signature of the thinking before it, `delta` a delta of the open text, or its end, and `end` the `message_delta`.
 */
class WrittenReply {
  #start: Json | undefined;
  #block: OpenBlock | undefined;
  #counts: UsageCounts;
  #hasSaid = false;
  readonly #isShown: boolean;

  constructor({ reasoning }: ProviderRequest) {
    this.#isShown = reasoning === 'shown';
  }

  async *read(response: Response): AsyncGenerator<ReplyPart> {
    for await (const events of readEvents(response))
      for (const { event: name, data } of events) {
        const isWhole = name === wholeBody;
        const json = parseAnswer(data || '{}') as Json;
        if (name === 'error' || json.type === 'error') throw eventError(json, response);
        for (const event of isWhole ? eventsOf(json) : [json]) yield* this.#take(event);
      }
  }

  *#take(event: Json): Generator<ReplyPart> {
    const { type = '', index = 0, message, content_block: block, delta, usage } = streamEvent.parse(event);
    const counted = usage ?? message?.usage;
    if (counted) {
      this.#counts = laterCounts(this.#counts, counted);
      yield { usage: toUsage(this.#counts), tier: counted.service_tier, model: message?.model };
    }
    switch (type) {
      case 'message_start':
        this.#start = event.message as Json;
        return;
      case 'content_block_start':
        yield* this.#begin();
        if (block) yield* this.#open(index, event.content_block as Json);
        return;
      case 'content_block_delta':
        yield* this.#add(index, event.delta as Json);
        return;
      case 'content_block_stop':
        yield* this.#close(index);
        return;
      case 'message_delta': {
        const refusal = delta ? refusalOf(delta) : undefined;
        // Another provider may answer what was refused before any part of the reply.
        if (refusal !== undefined && !this.#hasSaid) return void (yield { reason: 'blocked', refusal });
        yield* this.#begin();
        yield { opaque: { role: 'end', data: JSON.stringify(event) } };
        yield { reason: endOf(delta?.stop_reason) };
        return;
      }
      case 'message_stop':
        yield { isWhole: true };
    }
  }

  /** The message begins with its first block: until then another call may be made. */
  *#begin(): Generator<ReplyPart> {
    if (this.#start === undefined) return;
    const { content: _, ...start } = this.#start;
    this.#start = undefined;
    yield { opaque: { role: 'start', data: JSON.stringify(start) } };
  }

  *#open(key: number, first: Json): Generator<ReplyPart> {
    const { type, text, thinking, signature, id, name, input, ...extra } = first;
    this.#block = { type: String(type), first, deltas: [], signature: '', hasOwnDeltas: false };
    this.#hasSaid ||= type !== 'thinking' && type !== 'redacted_thinking';
    if (type === 'text') yield { isNewText: true, text: String(text ?? '') };
    else if (type === 'thinking') {
      this.#block.signature = String(signature ?? '');
      yield { thinking: '' };
      if (thinking) yield* this.#think(String(thinking));
    } else if (type === 'tool_use') {
      const own = Object.keys(extra).length > 0 ? JSON.stringify(extra) : undefined;
      const json = toJsonText(input);
      const preset = json === '{}' ? undefined : json;
      yield { call: { key, id: String(id), name: String(name), extra: own, preset } };
    }
  }

  *#add(key: number, delta: Json): Generator<ReplyPart> {
    const block = this.#block;
    if (block === undefined) return;
    const text = String(delta.text ?? delta.thinking ?? delta.signature ?? delta.partial_json ?? '');
    switch (`${block.type} ${delta.type}`) {
      case 'text text_delta':
        return void (yield { text });
      case 'thinking thinking_delta':
        return yield* this.#think(text);
      case 'thinking signature_delta':
        block.signature += text;
        return void (yield { held: text.length });
      case 'tool_use input_json_delta':
        return void (yield { call: { key, arguments: text } });
      default:
        yield* this.#addOwn(block, delta);
    }
  }

  *#addOwn(block: OpenBlock, delta: Json): Generator<ReplyPart> {
    const data = JSON.stringify(delta);
    if (block.type === 'text') {
      block.hasOwnDeltas = true;
      yield { opaque: { role: 'delta', data } };
    } else {
      block.deltas.push(delta);
      yield { held: data.length };
    }
  }

  *#think(text: string): Generator<ReplyPart> {
    const { deltas } = this.#block ?? {};
    if (this.#isShown) yield { thinking: text };
    else {
      deltas?.push({ type: 'thinking_delta', thinking: text });
      yield { held: text.length };
    }
  }

  *#close(key: number): Generator<ReplyPart> {
    const block = this.#block;
    this.#block = undefined;
    if (block === undefined) return;
    const { type, first, deltas, signature, hasOwnDeltas } = block;
    if (type === 'tool_use') yield { call: { key, isEnded: true } };
    else if (type === 'thinking' && this.#isShown) {
      if (signature !== '') yield { opaque: { data: JSON.stringify({ signature }) } };
    } else if (type === 'thinking') {
      const own = { ...first, signature: '' };
      const signed = [...deltas, { type: 'signature_delta', signature }];
      yield { opaque: { data: JSON.stringify({ block: own, deltas: signed }) } };
    } else if (type !== 'text') yield { opaque: { data: JSON.stringify({ block: first, deltas }) } };
    else if (hasOwnDeltas) yield { opaque: { role: 'delta', data: '{"type":"end"}' } };
  }
}

/** The events of a message that came whole. */
function eventsOf({ content, stop_reason, stop_sequence, stop_details, usage, ...message }: Json): Json[] {
  const blocks = Array.isArray(content) ? content : [];
  return [
    { type: 'message_start', message: { ...message, usage } },
    ...blocks.flatMap((block: Json, index) => [
      { type: 'content_block_start', index, content_block: block },
      { type: 'content_block_stop', index },
    ]),
    { type: 'message_delta', delta: { stop_reason, stop_sequence, stop_details }, usage },
    { type: 'message_stop' },
  ];
}

/** All words are ends: the client gets them as they are. */
const endOf = (word: string | null | undefined): ReplyPart['reason'] => {
  if (word === undefined || word === null) return undefined;
  return word === 'max_tokens' || word === 'model_context_window_exceeded' ? 'length' : 'stop';
};
