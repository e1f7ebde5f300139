import { buffer } from 'node:stream/consumers';
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { isObject } from '../../../shared/json/json.js';
import { parseAnswer } from '../reply/exact-json.js';
import { type CallHooks, type HttpAnswer, type HttpClient, singleFields } from './http-client.js';
import { EventBytes } from './stream-pieces.js';

/** An option of `fetch` beside the standard's, whose own signal is the SDK's. */
type CallOptions = { call: CallHooks };

/** For SDKs with a time limit of their own: far above every deadline, which comes with the signal. */
export const sdkTimeoutMs = 3_600_000;

/** The `fetchOptions` of an SDK that tell `fetch` which call it is for. */
export const toFetchOptions = ({ signal, traceparent, onLife, fillBody, meter }: CallHooks): object =>
  ({ call: { signal, traceparent, onLife, fillBody, meter } }) satisfies CallOptions;

/** The `fetch` for the SDKs of OpenAI, Anthropic and Vertex AI: for bodies of text, with the hooks of the call. */
export function createSdkFetch(client: HttpClient): typeof fetch {
  return async (input, init = {}) => {
    if (!hasCall(init) || typeof input !== 'string' || typeof init.body !== 'string')
      throw new TypeError('only calls of a provider can be made, and only text can be sent');
    const { origin, pathname, search } = new URL(input);
    const answer = await client.send({
      ...init.call,
      origin,
      path: pathname + search,
      method: init.method ?? 'GET',
      headers: Object.fromEntries(init.headers instanceof Headers ? init.headers : new Headers(init.headers)),
      body: init.body,
    });
    // It has all of a response that the SDKs use.
    return new SdkResponse(answer) as unknown as Response;
  };
}

const hasCall = (init: RequestInit): init is RequestInit & CallOptions => 'call' in init;

/** The part of `Response` that the SDKs use; a real one costs several times as much. */
class SdkResponse {
  readonly status: number;
  readonly statusText = '';
  readonly url = '';
  readonly headers: SdkHeaders;
  readonly #body: Buffer | EventBytes;

  constructor({ status, headers, body }: HttpAnswer) {
    this.status = status;
    this.headers = new SdkHeaders(Object.entries(singleFields(headers)));
    this.#body = body;
  }

  get ok(): boolean {
    return this.status >= 200 && this.status < 300;
  }

  get body(): EventBytes {
    return this.#body instanceof EventBytes ? this.#body : EventBytes.of(this.#body);
  }

  async text(): Promise<string> {
    return String(this.#body instanceof EventBytes ? await buffer(this.#body) : this.#body);
  }

  async json(): Promise<unknown> {
    return JSON.parse(await this.text());
  }
}

/** The part of `Headers` that the SDKs use. */
class SdkHeaders extends Map<string, string> {
  override get(name: string): string | undefined {
    return super.get(name.toLowerCase());
  }
}

/** The name of the one event that a body has which is no stream, although one was asked for: its data are all of it. */
export const wholeBody = 'whole body';

/**
 * The events of a stream, in lists of those that came at once, without those that only keep a connection alive. The
 * SDKs' own readers take up to twice as long.
 */
export async function* readEvents({ body }: Response): AsyncGenerator<EventSourceMessage[]> {
  if (body === null) return;
  const decoder = new TextDecoder();
  let events: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (event) => isSignOfLife(event) || events.push(event) });
  let first: string | undefined;
  let whole = '';
  for await (const chunk of body) {
    const text = decoder.decode(chunk, { stream: true });
    first ??= text.trimStart()[0];
    // No line of a stream of events begins so.
    if (first === '{') whole += text;
    else parser.feed(text);
    if (events.length === 0) continue;
    yield events;
    events = [];
  }
  // Some servers leave out the blank line behind the last event.
  parser.feed('\n\n');
  yield whole === '' ? events : [{ event: wholeBody, data: whole, id: undefined }];
}

const sign = /^(: ?)?(ping|keep-?alive|heartbeat)$/i;

/**
 * Some servers write the time into such an event, or nothing but its name, as Vertex AI does for models of others.
 * https://github.com/anomalyco/opencode/issues/50871
 */
const isSignOfLife = ({ event = '', data }: EventSourceMessage): boolean =>
  sign.test(event) || sign.test(data);

/** The JSON that an event has: an empty object for none, or for a text without a character, as for a sign of life. */
export function jsonOf({ data }: EventSourceMessage): unknown {
  const json = (data.trim() === '' ? undefined : parseAnswer(data)) || {};
  return isObject(json) && typeof json.type === 'string' && sign.test(json.type) ? {} : json;
}
