import { readJson } from '../../shared/json/json.js';
import { EventBytes } from '../../workers/providers/http/event-bytes.js';
import {
  type Connecting,
  type HttpAnswer,
  HttpClient,
  type HttpRequest,
} from '../../workers/providers/http/http-client.js';

/** A request and its answer, without credentials, and without the names of accounts and projects. */
export interface Exchange {
  readonly request: { method: string; path: string; body: unknown };
  readonly response: {
    readonly status: number;
    readonly headers: Readonly<Record<string, unknown>>;
    /** The JSON or the text of an answer that came whole. */
    readonly body?: unknown;
    /** The texts of a stream, with milliseconds since its beginning; Amazon's frames have a character for each byte. */
    readonly pieces?: (readonly [ms: number, text: string])[];
  };
}

const shownHeaders =
  /^(content-type|retry-after(-ms)?|(x-)?request-id|x-amzn-(requestid|errortype)|openai-version)$/;

/** Keys, organizations, projects and accounts, as providers have them in addresses and texts. */
const names = /\b(sk|org|proj|key|user)[-_][\w*-]{6,}|\barn:aws[^\s"']*|\bprojects\/[^\s/"'%]+|\b\d{12}\b/g;

/** The HTTP client of the providers' SDKs; it also keeps what is asked and answered. */
export class RecordingHttp extends HttpClient {
  readonly #secrets: readonly string[];
  #exchanges: Exchange[] = [];
  #streams: Promise<void>[] = [];

  /** `secrets` stand nowhere in what it keeps. */
  constructor(maxBytes: number, { secrets, ...connecting }: Connecting & { secrets: readonly string[] }) {
    super(maxBytes, connecting);
    this.#secrets = secrets;
  }

  override async send(request: HttpRequest): Promise<HttpAnswer> {
    const { method, path, body } = request;
    const answer = await super.send(request);
    const { status } = answer;
    const shown = Object.entries(answer.headers).filter(([name]) => shownHeaders.test(name));
    const response = { status, headers: Object.fromEntries(shown) };
    const sent = {
      method,
      path: this.#hide(decodeURIComponent(path.replace(/\?.*/, ''))),
      body: readJson(this.#hide(String(typeof body === 'string' ? body : Buffer.from(body)))),
    };
    const source = answer.body;
    if (source instanceof EventBytes) {
      const pieces: [number, string][] = [];
      this.#exchanges.push({ request: sent, response: { ...response, pieces } });
      const copy = new EventBytes({ pause: () => {}, resume: () => {}, abort: () => void source.return() });
      const isText = /^text\//.test(String(response.headers['content-type']));
      this.#streams.push(this.#copy(source, copy, { pieces, isText }));
      return { ...answer, body: copy };
    }
    const text = this.#hide(String(source));
    this.#exchanges.push({ request: sent, response: { ...response, body: readJson(text) ?? text } });
    return answer;
  }

  /** The exchanges since the last time, once their streams have ended. */
  async take(): Promise<Exchange[]> {
    await Promise.all(this.#streams);
    const taken = this.#exchanges;
    this.#exchanges = [];
    this.#streams = [];
    return taken;
  }

  async #copy(
    source: EventBytes,
    copy: EventBytes,
    { pieces, isText }: { pieces: [number, string][]; isText: boolean },
  ): Promise<void> {
    const decoder = new TextDecoder();
    const beganAt = performance.now();
    try {
      for await (const chunk of source) {
        const text = isText ? decoder.decode(chunk, { stream: true }) : chunk.toString('latin1');
        pieces.push([Math.round(performance.now() - beganAt), this.#hide(text)]);
        copy.push(chunk);
      }
      copy.end();
    } catch (error) {
      copy.end(error as Error);
    }
  }

  /** Blanks secrets and names out. The length stays the same, so that frames keep theirs. */
  #hide(text: string): string {
    const without = this.#secrets.reduce((rest, secret) => rest.replaceAll(secret, blank), text);
    return without.replace(names, blank);
  }
}

const blank = (hidden: string): string => '_'.repeat(hidden.length);
