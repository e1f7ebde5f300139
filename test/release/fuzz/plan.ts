import fc from 'fast-check';
import type { Header } from './client.js';

/** The part of a request, apart from its body and its query, that an operation cannot take, or may not. */
export type Oddity = 'method' | 'address' | 'id' | 'credentials' | 'headers' | 'media type' | 'encoding';

/**
 * A request before it is sent. Its path, headers and body name posts that only the run knows: `«id 3»`, `«etag 3»`
 * (the tag it had when it was last written), `«gone 3»` (deleted), `«fresh»` (a post of its own), `«writer»` (a token),
 * `«chat 3»` (a chat that is kept).
 */
export interface Plan {
  readonly method: string;
  readonly path: string;
  /** Without the question mark. */
  readonly query?: string | undefined;
  readonly credentials: readonly Header[];
  readonly contentType?: readonly Header[] | undefined;
  /** Headers that mean something to the operation. */
  readonly own?: readonly Header[] | undefined;
  /** Headers that mean nothing to it. */
  readonly others?: readonly Header[];
  readonly body?: PlannedBody | undefined;
  readonly odd?: Oddity;
}

/** The request as it was sent: the plan with its names resolved. */
export interface SentPlan extends Plan {
  /** The path with the query. */
  readonly target: string;
}

export interface PlannedBody {
  readonly text: string;
  readonly bytes: 'utf8' | 'latin1' | 'utf16le';
  readonly compressed?: 'gzip' | 'deflate' | 'br';
}

/** So many posts have a number. */
export const numberedPosts = 40;

/** So many chats are kept. */
export const numberedChats = 8;

/** Change of a plan that leaves it with one thing that is odd. */
export type Twist = Partial<Plan>;

/** A header with any of the values. */
export const one = (name: string, values: fc.Arbitrary<string>): fc.Arbitrary<Header[]> =>
  values.map((value) => [[name, value]]);

/** Every character that a header may hold; in latin1, as Node sends it. */
export const headerText = fc.string({
  unit: fc
    .integer({ min: 0x20, max: 0xff })
    .filter((code) => code !== 0x7f)
    .map((code) => String.fromCharCode(code)),
  maxLength: 60,
});
