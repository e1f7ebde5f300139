import {
  type ClientRequest,
  Agent as HttpAgent,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as requestHttp,
} from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { limitResponse, type ResponseLimits } from './response-limit.js';

/** A `fetch` for the providers' SDKs, and how to close the connections it keeps. */
export interface HttpFetch {
  fetch: typeof fetch;
  /** Closes idle connections. */
  close(): void;
}

/** An option of `fetch` beside the standard's. */
export interface ActivityHook {
  /** Called for every line of an answer that is a stream of events. */
  onActivity: (() => void) | undefined;
}

/**
 * A `fetch` over Node's own HTTP client, for the calls that SDKs make: a method, headers, a body of text, a signal.
 * Node's built-in one took nearly half of what an SDK's call cost (docs/decisions/0007-sdk-fetch.md). Does not follow
 * redirects and asks for no compression. Aborting destroys the socket, also while the body is on its way. An answer
 * larger than the limit rejects, or breaks its stream, with a `Failure`.
 */
export function createHttpFetch(limits: ResponseLimits): HttpFetch {
  const http = new HttpAgent({ keepAlive: true });
  const https = new HttpsAgent({ keepAlive: true });
  return {
    fetch: async (input, init = {}) => {
      const url = new URL(input instanceof Request ? input.url : input);
      const { method = 'GET', signal } = init;
      const body = bodyText(init.body);
      const options = {
        method,
        headers: {
          ...Object.fromEntries(init.headers instanceof Headers ? init.headers : new Headers(init.headers)),
          'content-length': String(Buffer.byteLength(body)),
        },
      };
      const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
      const request =
        url.protocol === 'https:'
          ? requestHttps(url, { ...options, agent: https }, resolve)
          : requestHttp(url, { ...options, agent: http }, resolve);
      request.on('error', reject).end(body);
      if (signal) destroyOnAbort(request, signal);
      return toResponse(await promise, { ...limits, ...('onActivity' in init && (init as ActivityHook)) });
    },
    close: () => {
      http.destroy();
      https.destroy();
    },
  };
}

/**
 * Not the `signal` of `node:http`, which destroys the socket with an error: once the answer has come, but nobody has read it yet,
 * nothing listens to the socket any more, and such an error ends the process.
 */
function destroyOnAbort(request: ClientRequest, signal: AbortSignal): void {
  const destroy = () => void request.destroy();
  if (signal.aborted) destroy();
  signal.addEventListener('abort', destroy, { once: true });
  request.once('close', () => signal.removeEventListener('abort', destroy));
}

function bodyText(body: RequestInit['body']): string {
  if (body === undefined || body === null) return '';
  if (typeof body !== 'string') throw new TypeError('only text can be sent');
  return body;
}

/**
 * A stream of events is passed on as it comes. Anything else is read first, which is cheaper than a web stream; errors
 * are, whatever they say they are, because the SDKs take a body that they cannot read for an empty one.
 */
async function toResponse(
  incoming: IncomingMessage,
  { onActivity, ...limits }: ResponseLimits & Partial<ActivityHook>,
): Promise<Response> {
  const { statusCode: status = 0, headers } = incoming;
  const limited = limitResponse(incoming, limits);
  const bytes = onActivity ? watch(limited, onActivity) : limited;
  const streamed = status < 400 && headers['content-type']?.startsWith('text/event-stream');
  const body = streamed ? ReadableStream.from(bytes) : await readAll(bytes);
  return new Response(nullBodyStatuses.has(status) ? null : body, { status, headers: single(headers) });
}

/** Headers without those that come more than once (cookies, which no SDK reads). */
const single = (headers: IncomingHttpHeaders): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );

// Not a listener to `data`, which makes the stream flow before anybody reads it.
async function* watch(chunks: AsyncIterable<Buffer>, onActivity: () => void): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    if (chunk.includes(lineFeed)) onActivity();
    yield chunk;
  }
}

/** A single byte that comes now and then is no sign of work. */
const lineFeed = 0x0a;

/** Statuses whose answers have no body (Fetch standard, 2.2.3). */
const nullBodyStatuses = new Set([204, 205, 304]);

async function readAll(bytes: AsyncIterable<Buffer>): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  for await (const chunk of bytes) chunks.push(chunk);
  return Buffer.concat(chunks);
}
