import {
  Agent as HttpAgent,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as requestHttp,
} from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { Readable } from 'node:stream';

/** A `fetch` for the providers' SDKs, and how to close the connections it keeps. */
export interface HttpFetch {
  fetch: typeof fetch;
  /** Closes idle connections. */
  close(): void;
}

/**
 * A `fetch` over Node's own HTTP client, for the calls that SDKs make: a method, headers, a body of text, a signal.
 * Node's built-in one took nearly half of what an SDK's call cost (docs/decisions/0007-sdk-fetch.md). Does not follow
 * redirects and asks for no compression. Aborting destroys the socket, also while the body is on its way.
 */
export function createHttpFetch(): HttpFetch {
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
        ...(signal && { signal }),
      };
      const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
      const request =
        url.protocol === 'https:'
          ? requestHttps(url, { ...options, agent: https }, resolve)
          : requestHttp(url, { ...options, agent: http }, resolve);
      request.on('error', reject).end(body);
      return toResponse(await promise);
    },
    close: () => {
      http.destroy();
      https.destroy();
    },
  };
}

function bodyText(body: RequestInit['body']): string {
  if (body === undefined || body === null) return '';
  if (typeof body !== 'string') throw new TypeError('only text can be sent');
  return body;
}

/** A stream of events is passed on as it comes; anything else is read first, which is cheaper than a web stream. */
async function toResponse(incoming: IncomingMessage): Promise<Response> {
  const { statusCode: status = 0, headers } = incoming;
  const streamed = headers['content-type']?.startsWith('text/event-stream');
  const body = streamed ? (Readable.toWeb(incoming) as ReadableStream) : await readAll(incoming);
  return new Response(nullBodyStatuses.has(status) ? null : body, { status, headers: single(headers) });
}

/** Headers without those that come more than once (cookies, which no SDK reads). */
const single = (headers: IncomingHttpHeaders): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );

/** Statuses whose answers have no body (Fetch standard, 2.2.3). */
const nullBodyStatuses = new Set([204, 205, 304]);

async function readAll(incoming: IncomingMessage): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
