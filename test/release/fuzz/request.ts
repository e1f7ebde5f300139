import type { Header } from './client.js';

/** The one flaw of a request, apart from its body and its query, which the schemas judge. */
export type Oddity = 'method' | 'address' | 'id' | 'credentials' | 'headers' | 'media type';

/**
 * A request before it is sent. Its path and headers may hold what only the run knows: `«post 3»` (one of the posts that
 * stay), `«spare»` (one that may be deleted), `«gone 3»` (deleted), `«chat 3»`, `«cursor»`, `«writer»` (a token).
 */
export interface Request {
  readonly method: string;
  readonly path: string;
  /** Without the question mark. */
  readonly query?: string | undefined;
  readonly credentials: readonly Header[];
  readonly contentType?: readonly Header[] | undefined;
  /** Headers that mean something to the operation. */
  readonly own: readonly Header[];
  /** Headers that mean nothing to it. */
  readonly others: readonly Header[];
  readonly body?: RequestBody | undefined;
  readonly odd?: Oddity;
}

/** The request as it was sent, what only the run knows filled in. */
export interface SentRequest extends Request {
  /** The path with the query. */
  readonly target: string;
}

export interface RequestBody {
  readonly text: string;
  readonly bytes: 'utf8' | 'latin1' | 'utf16le';
  readonly compressed?: 'gzip' | 'deflate' | 'br' | undefined;
}
