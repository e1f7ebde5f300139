import type { IncomingHttpHeaders } from 'node:http';
import { createRequire } from 'node:module';
import type { Transform } from 'node:stream';
import * as zlib from 'node:zlib';
import type { Dispatcher } from 'undici';
import { unusableAnswer } from '../errors/error-classification.js';
import type { CallMeter } from '../reply/call-meter.js';
import { EventBytes, FrameMeter, LineMeter, type StreamMeter } from './stream-pieces.js';

const load = createRequire(import.meta.url);
// All of undici takes 14 MB more, and twice as long to load; the agent for proxies cannot connect without it.
const loadAgent = () => load('undici/lib/dispatcher/agent.js') as typeof import('undici').Agent;
const loadProxyAgent = () => (load('undici') as typeof import('undici')).EnvHttpProxyAgent;

/** The hooks of a call. */
export interface CallHooks {
  /** Destroys the connection when it aborts, also while the body is on its way. */
  signal?: AbortSignal | undefined;
  /** Sent along as the header of that name; absent when the call is not traced. */
  traceparent?: string | undefined;
  /** Called when lines or frames of an answer that is a stream of events have come whole. */
  onLife?: (() => void) | undefined;
  /** Completes the body before it is sent; absent where it is whole. */
  fillBody?: ((body: string) => Promise<Uint8Array>) | undefined;
  /** Hears that the request is on its way, and how its answer begins. */
  meter?: Pick<CallMeter, 'sent' | 'head'> | undefined;
}

/** A request with the whole of its body. */
export interface HttpRequest extends CallHooks {
  origin: string;
  /** The path, with its query. */
  path: string;
  method: string;
  headers: Record<string, string>;
  body: string | Uint8Array;
}

/** An answer of any status: a stream of events as it comes, any other body read to its end. */
export interface HttpAnswer {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer | EventBytes;
}

/** How an `HttpClient` connects. */
export interface Connecting {
  /** The proxy for all addresses with https but those of this machine; absent means none. */
  proxy?: string | undefined;
  /** Comma list of hosts that are called without it. */
  noProxy?: string | undefined;
  /** How long a connection may take to come about, in milliseconds. */
  connectTimeoutMs?: number;
}

/**
 * The HTTP client of the providers' SDKs (docs/decisions/0007-sdk-fetch.md). A connection carries one call at a time,
 * and there are as many as calls at once. Does not follow redirects. Asks for no compression, but decodes what a
 * server or a proxy on the way has compressed all the same. An answer larger than the limit rejects, or breaks its
 * stream, with a `Failure`. Time limits come with the signal, but for that of a connection: a network that drops what
 * is sent says nothing.
 */
export class HttpClient {
  readonly #agent: Dispatcher;

  /** `maxBytes`: the largest body, or event of a stream, once it is decoded. */
  constructor(
    private readonly maxBytes: number,
    { proxy, noProxy, connectTimeoutMs = 10_000 }: Connecting = {},
  ) {
    // HTTP/2 would have many calls share a connection, and its end.
    const options = { allowH2: false, connectTimeout: connectTimeoutMs, ...unlimited };
    this.#agent = proxy ? openProxyAgent(options, proxy, noProxy) : new (loadAgent())(options);
  }

  async send(request: HttpRequest): Promise<HttpAnswer> {
    const { origin, path, method, traceparent, fillBody } = request;
    const body = fillBody ? await fillBody(String(request.body)) : request.body;
    // Below the SDKs, whose signatures do not cover it: a proxy on the way may continue the trace.
    const headers = {
      ...request.headers,
      'accept-encoding': 'identity',
      ...(traceparent !== undefined && { traceparent }),
    };
    const exchange = new Exchange(request, this.maxBytes);
    this.#agent.dispatch({ origin, path, method, headers, body }, exchange);
    return exchange.answer;
  }

  close(): void {
    void this.#agent.destroy();
  }
}

/** Longer than a provider keeps an idle connection: it says for how long, or closes it. */
const keepAliveMs = 600_000;
const unlimited = {
  headersTimeout: 0,
  bodyTimeout: 0,
  keepAliveTimeout: keepAliveMs,
  keepAliveMaxTimeout: keepAliveMs,
};

/** The class would take a field that is not given from the environment. */
const openProxyAgent = (options: object, httpsProxy: string, noProxy = ''): Dispatcher =>
  new (loadProxyAgent())({
    ...options,
    httpsProxy,
    httpProxy: '',
    noProxy: `${noProxy},localhost,127.0.0.1,::1`,
  });

type Controller = Dispatcher.DispatchController;

class Exchange implements Dispatcher.DispatchHandler {
  readonly #answering = Promise.withResolvers<HttpAnswer>();
  readonly answer = this.#answering.promise;
  #controller: Controller | undefined;
  #head: Pick<HttpAnswer, 'status' | 'headers'> = { status: 0, headers: {} };
  #events: EventBytes | undefined;
  #meter: StreamMeter | undefined;
  #openDecoder: OpenDecoder | undefined;
  #decoder: Transform | undefined;
  #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(
    private readonly hooks: CallHooks,
    private readonly maxBytes: number,
  ) {
    hooks.signal?.addEventListener('abort', this.#abort);
  }

  readonly #abort = (): void => this.#fail(this.hooks.signal?.reason);

  onRequestStart(controller: Controller): void {
    this.#controller = controller;
    if (this.hooks.signal?.aborted) this.#abort();
    else this.hooks.meter?.sent();
  }

  onResponseStart(controller: Controller, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return;
    this.#head = { status, headers };
    this.hooks.meter?.head(this.#head);
    this.#meter = meterOf(this.#head);
    this.#openDecoder = decoders.get(String(headers['content-encoding']).trim().toLowerCase());
    if (this.#meter) {
      this.#events = new EventBytes({
        pause: () => (this.#decoder ?? controller).pause(),
        resume: () => (this.#decoder ?? controller).resume(),
        abort: (reason) => this.#fail(reason),
      });
      this.#answering.resolve({ ...this.#head, body: this.#events });
    } else if (Number(headers['content-length']) > this.maxBytes) throw unusableAnswer('oversized');
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    if (!this.#openDecoder) return void this.#take(chunk);
    this.#decoder ??= this.#read(this.#openDecoder(chunk), controller);
    if (!this.#decoder.write(chunk)) controller.pause();
  }

  onResponseEnd(): void {
    if (this.#decoder) this.#decoder.end();
    else this.#finish();
  }

  onResponseError(_: unknown, error: Error): void {
    this.#release();
    this.#decoder?.destroy();
    this.#answering.reject(error);
    this.#events?.end(error);
  }

  /** Takes what is decoded as soon as it is, and has the connection wait while it is not. */
  #read(decoder: Transform, controller: Controller): Transform {
    const take = (chunk: Buffer) => {
      try {
        this.#take(chunk);
      } catch (error) {
        decoder.destroy(error as Error);
      }
    };
    return decoder
      .on('data', take)
      .on('drain', () => controller.resume())
      .on('error', (error) => this.#fail(error))
      .on('end', () => {
        this.#finish();
        // Closes a connection that sends more than the encoded body; does nothing where the answer has ended.
        controller.abort(new Error('The encoded body ended before the answer.'));
      });
  }

  #take(chunk: Buffer): void {
    const taken = this.#meter?.take(chunk);
    this.#bytes = taken?.openBytes ?? this.#bytes + chunk.length;
    if (this.#bytes > this.maxBytes) throw unusableAnswer('oversized');
    // A single byte that comes now and then is no sign of work.
    if (taken?.ended) this.hooks.onLife?.();
    if (this.#events) this.#events.push(chunk);
    else this.#chunks.push(chunk);
  }

  #finish(): void {
    this.#release();
    if (this.#events) this.#events.end();
    else this.#answering.resolve({ ...this.#head, body: Buffer.concat(this.#chunks) });
  }

  /** Also for an answer that has come whole while its decoder has not ended: its connection reports nothing more. */
  #fail(error: Error): void {
    this.#controller?.abort(error);
    this.onResponseError(undefined, error);
  }

  #release(): void {
    this.hooks.signal?.removeEventListener('abort', this.#abort);
  }
}

type OpenDecoder = (firstChunk: Buffer) => Transform;

// https://www.rfc-editor.org/rfc/rfc9110#section-8.4.1, where deflate has a header that some servers leave out, and
// https://www.rfc-editor.org/rfc/rfc9659 for the window: by default a frame may ask for 128 MiB of memory.
const decoders: ReadonlyMap<string, OpenDecoder> = new Map<string, OpenDecoder>([
  ['gzip', () => zlib.createGunzip()],
  ['x-gzip', () => zlib.createGunzip()],
  ['br', () => zlib.createBrotliDecompress()],
  ['deflate', ([first = 0]) => ((first & 0x0f) === 8 ? zlib.createInflate() : zlib.createInflateRaw())],
  ['zstd', () => zlib.createZstdDecompress({ params: { [zlib.constants.ZSTD_d_windowLogMax]: 23 } })],
]);

/**
 * For a stream of events; undefined for any other answer. Error bodies are always read to their end, because the SDKs
 * take a body that they cannot read for an empty one.
 */
function meterOf({ status, headers }: Pick<HttpAnswer, 'status' | 'headers'>): StreamMeter | undefined {
  const type = headers['content-type'] ?? '';
  if (status >= 400) return undefined;
  if (type.startsWith('text/event-stream')) return new LineMeter();
  return type.startsWith('application/vnd.amazon.eventstream') ? new FrameMeter() : undefined;
}

/** Headers without those that come more than once (cookies, which no SDK reads). */
export const singleFields = (headers: IncomingHttpHeaders): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).filter((field): field is [string, string] => typeof field[1] === 'string'),
  );
