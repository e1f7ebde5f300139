import { type Behaviour, type Delivery, echoBehaviour, type ReplyBehaviour } from './behaviour.js';
import type { Ending } from './wire-format.js';

interface Row {
  /** The model name as documented, with `<…>` for numbers and keys. */
  readonly name: string;
  readonly summary: string;
  behave(...values: string[]): Behaviour;
}

const reply = (facts: Partial<ReplyBehaviour>): Behaviour => ({ ...echoBehaviour, ...facts });
const ending = (name: string, how: Ending, summary: string): Row => ({
  name,
  summary,
  behave: () => reply({ ending: how }),
});
/** Numbered deltas of a stream, and what becomes of it behind them. */
const broken = (n: string | undefined, delivery: Delivery = 'whole'): ReplyBehaviour => ({
  ...echoBehaviour,
  ...{ says: 2 * Number(n), delivery, gapMs: brokenGapMs, afterDeltas: Number(n) },
});
const brokenGapMs = 20;
const error = (status: string, times: string, retryAfterS?: string): Behaviour => ({
  kind: 'error',
  status: Number(status),
  times: Number(times),
  ...(retryAfterS !== undefined && { retryAfterS: Number(retryAfterS) }),
});

const rows: Row[] = [
  {
    name: 'sim-echo',
    summary: "a reply that shows the conversation it read, within the call's token limit",
    behave: () => echoBehaviour,
  },
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
  {
    name: 'sim-context-<n>',
    summary: "echo; the provider's error for a conversation of more than n tokens",
    behave: (n) => ({ kind: 'context', maxTokens: Number(n) }),
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
    behave: () => ({ kind: 'stream-error', reply: echoBehaviour }),
  },
  {
    name: 'sim-stream-error-<n>',
    summary: 'the same after n numbered deltas, 20 ms apart',
    behave: (n) => ({ kind: 'stream-error', reply: broken(n) }),
  },
  {
    name: 'sim-cut-<n>',
    summary: 'n numbered deltas, 20 ms apart, then closes the connection; sim-reset-body when not streamed',
    behave: (n) => broken(n, 'reset'),
  },
  {
    name: 'sim-stall-<n>',
    summary: 'n numbered deltas, 20 ms apart, then silence; sim-hang-body when not streamed',
    behave: (n) => broken(n, 'hang'),
  },
  {
    name: 'sim-unfinished-<n>',
    summary: 'n numbered deltas, 20 ms apart, then the end of the body; sim-truncated when not streamed',
    behave: (n) => broken(n, 'truncate'),
  },
  {
    name: 'sim-malformed-<n>',
    summary:
      'n numbered deltas, 20 ms apart, then an event that nobody can read; sim-truncated when not streamed',
    behave: (n) => broken(n, 'malformed'),
  },
  {
    name: 'sim-deltas-<n>-<length>',
    summary: 'n deltas of so many characters, as fast as they are read',
    behave: (n, length) => reply({ says: { pieces: Number(n), length: Number(length) } }),
  },
  {
    name: 'sim-deltas-<n>-<length>-<ms>',
    summary: 'the same, ms apart',
    behave: (n, length, ms) =>
      reply({ says: { pieces: Number(n), length: Number(length) }, gapMs: Number(ms) }),
  },
  {
    name: 'sim-timestamps-<n>-<ms>',
    summary:
      'n deltas, ms apart, each the milliseconds since the epoch at which it was sent; zeros when not streamed, and in frames that are not text',
    behave: (n, ms) => reply({ says: { timestamps: Number(n) }, gapMs: Number(ms) }),
  },
  {
    name: 'sim-no-usage',
    summary: 'echo that says nothing of the tokens it took',
    behave: () => reply({ withoutUsage: true }),
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
 * The behaviour of a model name; `undefined` if there is no such model. The text after an `@` is ignored: it only
 * keeps the calls of different tests apart.
 */
export function findBehaviour(model: string): Behaviour | undefined {
  const [name = ''] = model.split('@', 1);
  for (const { pattern, behave } of table) {
    const match = pattern.exec(name);
    if (match !== null) return behave(...match.slice(1));
  }
  return undefined;
}
