import type { Post, Problem } from '../../shared/contracts/contract.js';

/** A request; a `GET` unless it has a body. */
export interface Sent {
  method?: string;
  path?: string;
  /** Of an `Authorization: Bearer`. */
  token?: string | undefined;
  headers?: Record<string, string>;
  /** Sent as JSON, with the media type of that; text and bytes are sent as they are. */
  body?: unknown;
  signal?: AbortSignal;
  redirect?: 'manual';
}

/** An answer that was read to its end. */
export interface Answer<Body = Problem> {
  status: number;
  headers: Headers;
  text: string;
  /** The parsed text where that is JSON, and else an empty object. */
  body: Body;
}

export type Client = <Body = Problem>(sent?: Sent) => Promise<Answer<Body>>;

/** Gives what sends requests to this address, each with these headers unless it has its own. */
export const createClient =
  (url: string, usual: Record<string, string> = {}): Client =>
  async <Body>({ path = '', token, headers, body, method, ...init }: Sent = {}) => {
    const response = await fetch(url + path, {
      method: method ?? (body === undefined ? 'GET' : 'POST'),
      headers: {
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...usual,
        ...(token && { Authorization: `Bearer ${token}` }),
        ...headers,
      },
      ...(body !== undefined && { body: isRaw(body) ? body : JSON.stringify(body) }),
      ...init,
    });
    const text = await response.text();
    const isJson = text !== '' && response.headers.get('content-type')?.includes('json');
    const value: Body = JSON.parse(isJson ? text : '{}');
    return { status: response.status, headers: response.headers, text, body: value };
  };

const isRaw = (body: unknown): body is string | Uint8Array<ArrayBuffer> =>
  typeof body === 'string' || body instanceof Uint8Array;

/** The answer of an operation on posts: the same value typed as each of those that it may be. */
export interface BlogAnswer extends Answer<unknown> {
  post: Post;
  posts: Post[];
  problem: Problem;
}

/** Gives what sends requests to posts. */
export const createBlogClient =
  (url: string, usual?: Record<string, string>) =>
  async (sent: Sent): Promise<BlogAnswer> => {
    const answer = await createClient(url, usual)<Post & Post[]>(sent);
    const problem = answer.body as unknown as Problem;
    return { ...answer, post: answer.body, posts: answer.body, problem };
  };
