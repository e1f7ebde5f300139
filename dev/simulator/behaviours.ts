import type { Ending } from './wire-format.js';

/**
 * How the bytes of a reply reach the client: all at once; half, and then none while the connection stays open; half, and then
 * a reset; truncated; byte by byte; without end.
 */
export type Delivery = 'whole' | 'hang' | 'reset' | 'truncate' | 'drip' | 'endless';

/** A reply with status 200, which may still go wrong in its ending or its delivery. */
export interface ReplyBehaviour {
  readonly kind: 'reply';
  /** The text: a summary of the conversation, the last user turn, or the numbers from 1 to this one. */
  readonly says: 'echo' | 'verbatim' | number;
  readonly ending: Ending;
  readonly delivery: Delivery;
  /** The wait before the answer, in milliseconds. */
  readonly delayMs: number;
  /** The wait between two pieces (two bytes of a drip), in milliseconds. */
  readonly gapMs: number;
}

/** An error for `times` calls after the first `after` ones; those and all later calls get an echo. */
export interface ErrorBehaviour {
  readonly kind: 'error';
  readonly status: number;
  readonly after?: number;
  readonly times: number;
  readonly retryAfterS?: number;
}

/** No answer to the first `times` calls, and an echo for all later ones. */
export interface HangBehaviour {
  readonly kind: 'hang';
  readonly times: number;
}

/** What the simulator does with a call. */
export type Behaviour =
  | ReplyBehaviour
  | ErrorBehaviour
  | HangBehaviour
  | { readonly kind: 'endless-error'; readonly status: number }
  | { readonly kind: 'not-ready' | 'reset' | 'html' | 'garbage' | 'stream-error' };

interface Row {
  /** The model name as documented, with `<…>` for numbers and keys. */
  readonly name: string;
  readonly summary: string;
  behave(...values: string[]): Behaviour;
}

/** The plain reply, also of an error behaviour for calls that it spares. */
export const echoBehaviour: ReplyBehaviour = {
  kind: 'reply',
  says: 'echo',
  ending: 'stop',
  delivery: 'whole',
  delayMs: 0,
  gapMs: 0,
};

const reply = (facts: Partial<ReplyBehaviour>): Behaviour => ({ ...echoBehaviour, ...facts });
const ending = (name: string, how: Ending, summary: string): Row => ({
  name,
  summary,
  behave: () => reply({ ending: how }),
});
const error = (status: string, times: string, retryAfterS?: string): Behaviour => ({
  kind: 'error',
  status: Number(status),
  times: Number(times),
  ...(retryAfterS !== undefined && { retryAfterS: Number(retryAfterS) }),
});

const rows: Row[] = [
  { name: 'sim-echo', summary: 'a reply that shows the conversation it read', behave: () => echoBehaviour },
  {
    name: 'sim-verbatim',
    summary: "exactly the last user turn's text",
    behave: () => reply({ says: 'verbatim' }),
  },
  {
    name: 'sim-latency-<ms>',
    summary: 'echo after so many milliseconds',
    behave: (ms) => reply({ delayMs: Number(ms) }),
  },
  {
    name: 'sim-stream-<n>-<ms>',
    summary: 'n numbered deltas, ms apart; at once when not streamed',
    behave: (n, ms) => reply({ says: Number(n), gapMs: Number(ms) }),
  },
  {
    name: 'sim-status-<status>',
    summary: "the provider's error for an HTTP status, always",
    behave: (status) => error(status, 'Infinity'),
  },
  {
    name: 'sim-retry-after-<seconds>',
    summary: '429 with Retry-After, always',
    behave: (seconds) => error('429', 'Infinity', seconds),
  },
  {
    name: 'sim-fail-<n>-<status>',
    summary: 'the first n calls fail, then echo; -<key> at the end gives a counter of its own',
    behave: (n, status) => error(status, n),
  },
  {
    name: 'sim-fail-<n>-<status>-<key>',
    summary: 'the same with a key',
    behave: (n, status) => error(status, n),
  },
  {
    name: 'sim-good-<n>-<status>-<key>',
    summary: 'echo to the first n calls, then they fail',
    behave: (n, status) => ({ kind: 'error', status: Number(status), after: Number(n), times: Infinity }),
  },
  {
    name: 'sim-limit-<n>-<seconds>-<key>',
    summary: 'the first n calls get 429 with Retry-After, then echo',
    behave: (n, seconds) => error('429', n, seconds),
  },
  {
    name: 'sim-not-ready',
    summary: "the provider's error for a model that is being loaded",
    behave: () => ({ kind: 'not-ready' }),
  },
  { name: 'sim-hang', summary: 'never answers', behave: () => ({ kind: 'hang', times: Infinity }) },
  {
    name: 'sim-hang-<n>-<key>',
    summary: 'never answers the first n calls, then echo',
    behave: (n) => ({ kind: 'hang', times: Number(n) }),
  },
  {
    name: 'sim-hang-body',
    summary: 'headers and half of the body, then silence',
    behave: () => reply({ delivery: 'hang' }),
  },
  {
    name: 'sim-drip',
    summary: 'a valid answer, one byte per second',
    behave: () => reply({ delivery: 'drip', gapMs: 1000 }),
  },
  {
    name: 'sim-drip-<ms>',
    summary: 'a valid answer, one byte per so many milliseconds',
    behave: (ms) => reply({ delivery: 'drip', gapMs: Number(ms) }),
  },
  {
    name: 'sim-endless',
    summary: 'a reply that never ends, as fast as it is read',
    behave: () => reply({ delivery: 'endless' }),
  },
  {
    name: 'sim-endless-<status>',
    summary: "the provider's error for an HTTP status, with a body that never ends",
    behave: (status) => ({ kind: 'endless-error', status: Number(status) }),
  },
  {
    name: 'sim-reset',
    summary: 'resets the connection before any answer',
    behave: () => ({ kind: 'reset' }),
  },
  {
    name: 'sim-reset-body',
    summary: 'headers and half of the body, then closes the connection',
    behave: () => reply({ delivery: 'reset' }),
  },
  {
    name: 'sim-truncated',
    summary: 'well-formed HTTP, but JSON cut in the middle or a stream without its end',
    behave: () => reply({ delivery: 'truncate' }),
  },
  { name: 'sim-html', summary: '200 with a web page', behave: () => ({ kind: 'html' }) },
  { name: 'sim-garbage', summary: '200 with JSON of the wrong shape', behave: () => ({ kind: 'garbage' }) },
  {
    name: 'sim-stream-error',
    summary: 'an error in the middle of a 200 stream; 500 when not streamed',
    behave: () => ({ kind: 'stream-error' }),
  },
  ending('sim-empty', 'empty', 'no choices, content blocks or candidates'),
  ending('sim-null', 'null', 'a choice whose text is null, absent or blank'),
  ending('sim-length', 'length', 'text cut at the token limit'),
  ending('sim-blocked', 'blocked', 'withheld by the content filter'),
  ending('sim-blocked-reply', 'blocked-reply', 'cut by the content filter in the middle of the text'),
  ending('sim-refused', 'refused', 'refused by the model'),
];

const placeholders: Record<string, string> = { status: '([45]\\d\\d)', n: '(\\d{1,5})', key: '([\\w.-]+)' };
const number = '(\\d{1,7})';

const table = rows.map((row) => ({
  pattern: new RegExp(`^${row.name.replace(/<(\w+)>/g, (_, word: string) => placeholders[word] ?? number)}$`),
  behave: row.behave,
}));

/** The documentation of every behaviour: the model's name and what it does. */
export const behaviourList: readonly { model: string; does: string }[] = rows.map(({ name, summary }) => ({
  model: name,
  does: summary,
}));

/**
 * The behaviour of a model name; `undefined` if there is no such model. Whatever follows an `@` is ignored: it only keeps the
 * calls of different tests apart.
 */
export function findBehaviour(model: string): Behaviour | undefined {
  const [name = ''] = model.split('@', 1);
  for (const { pattern, behave } of table) {
    const match = pattern.exec(name);
    if (match !== null) return behave(...match.slice(1));
  }
  return undefined;
}
