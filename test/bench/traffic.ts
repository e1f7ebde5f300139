/** The requests of one run, as data that goes to the load generator. */
export interface Traffic {
  readonly origin: string;
  readonly method: 'GET' | 'PATCH' | 'POST';
  /** `{unique}` in one becomes something that no other request has. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Where requests go: each takes one at random, among those that are its connection's own when there are enough.
   * The ETag of one that has any is sent as If-Match, and is then the one of the answer.
   */
  readonly targets: readonly Target[];
  /** Each request takes one at random, with `{unique}` in it as in the headers. */
  readonly bodies: readonly string[];
  readonly expected: Expected;
}

export interface Target {
  readonly path: string;
  readonly etag?: string;
}

/** What every answer must be. */
export interface Expected {
  readonly status: number;
  readonly body: ExpectedBody;
}

/** Looked at in samples: reading each body would slow down who measures. */
export type ExpectedBody =
  | { readonly kind: 'empty' }
  /** An HTML page that links to so many posts at least. */
  | { readonly kind: 'page'; readonly posts: number }
  /** An object with at least these fields. */
  | { readonly kind: 'object'; readonly fields: readonly string[] }
  /** An array of such objects: exactly `length` of them, or any number from one. */
  | { readonly kind: 'array'; readonly fields: readonly string[]; readonly length?: number };

/** Whether the bytes of an answer's body are what was expected. */
export function isExpected(body: string, expected: ExpectedBody): boolean {
  if (expected.kind === 'empty') return body === '';
  if (expected.kind === 'page')
    return body.startsWith('<!doctype html>') && body.split('<h2').length > expected.posts;
  const value = parse(body);
  if (expected.kind === 'object') return hasFields(value, expected.fields);
  if (!Array.isArray(value) || value.length === 0) return false;
  const { length = value.length, fields } = expected;
  return value.length === length && value.every((item) => hasFields(item, fields));
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

const hasFields = (value: unknown, fields: readonly string[]): boolean =>
  typeof value === 'object' && value !== null && fields.every((field) => field in value);
