import { type Behaviour, calls, type Delivery, type Row, reply } from './behaviour.js';
import type { Ending } from './exchange.js';
import { thinkingRows } from './thinking-behaviours.js';

const ending = (how: Ending, summary: string): Row => [`sim-${how}`, summary, () => reply({ ending: how })];
/** Numbered deltas of a stream, and what becomes of it behind them. */
const broken = (n = 0, delivery: Delivery = 'whole') =>
  reply({ says: 2 * n, delivery, gapMs: 20, afterDeltas: n });
const error = (status = 0, times = Number.POSITIVE_INFINITY, retryAfterS?: number): Behaviour => ({
  kind: 'error',
  status,
  times,
  retryAfterS,
});

const rows: Row[] = [
  ['sim-echo', "a reply that shows the conversation it read, within the call's token limit", () => reply()],
  ['sim-verbatim', "exactly the last user turn's text", () => reply({ says: 'verbatim' })],
  ['sim-latency-<ms>', 'echo after so many milliseconds', (ms) => reply({ delayMs: ms })],
  [
    'sim-stream-<n>-<ms>',
    'n numbered deltas, ms apart; at once when not streamed',
    (n, ms) => reply({ says: n, gapMs: ms }),
  ],
  [
    'sim-gate-<n>',
    'n numbered deltas, and n more (one for 0) when the gate of this name opens; nothing before that for 0, or when not streamed',
    (n = 0) => reply({ says: 2 * n || 1, delivery: 'gated', afterDeltas: n }),
  ],
  ['sim-status-<status>', "the provider's error for an HTTP status, always", (status) => error(status)],
  ['sim-retry-after-<seconds>', '429 with Retry-After, always', (seconds) => error(429, Infinity, seconds)],
  [
    'sim-fail-<n>-<status>',
    'the first n calls fail, then echo; -<key> at the end gives a counter of its own',
    (n, status) => error(status, n),
  ],
  ['sim-fail-<n>-<status>-<key>', 'the same with a key', (n, status) => error(status, n)],
  [
    'sim-good-<n>-<status>-<key>',
    'echo to the first n calls, then they fail',
    (n, status) => ({ kind: 'error', status, after: n, times: Infinity }),
  ],
  [
    'sim-limit-<n>-<seconds>-<key>',
    'the first n calls get 429 with Retry-After, then echo',
    (n, seconds) => error(429, n, seconds),
  ],
  [
    'sim-denied-<n>-<key>',
    'the first n calls get 401 with a text that names the model, then echo',
    (n = 0) => ({ kind: 'denied', times: n }),
  ],
  ['sim-quota-<n>', "the provider's n-th error for what is spent", (n = 1) => ({ kind: 'quota', place: n })],
  ['sim-not-ready', "the provider's error for a model that is being loaded", () => ({ kind: 'not-ready' })],
  [
    'sim-context-<n>',
    "echo; the provider's error for a conversation of more than n tokens",
    (n) => ({ kind: 'context', maxTokens: n }),
  ],
  ['sim-hang', 'never answers', () => ({ kind: 'hang', times: Infinity })],
  ['sim-hang-<n>-<key>', 'never answers the first n calls, then echo', (n) => ({ kind: 'hang', times: n })],
  ['sim-hang-body', 'headers and half of the body, then silence', () => reply({ delivery: 'hang' })],
  ['sim-drip', 'a valid answer, one byte per second', () => reply({ delivery: 'drip', gapMs: 1000 })],
  [
    'sim-drip-<ms>',
    'a valid answer, one byte per so many milliseconds',
    (ms) => reply({ delivery: 'drip', gapMs: ms }),
  ],
  [
    'sim-endless',
    'a reply that never ends, as fast as it is read',
    () => reply({ delivery: 'endless', says: { pieces: 1, length: 16_384 } }),
  ],
  [
    'sim-endless-<status>',
    "the provider's error for an HTTP status, with a body that never ends",
    (status) => ({ kind: 'endless-error', status }),
  ],
  ['sim-reset', 'resets the connection before any answer', () => ({ kind: 'reset' })],
  [
    'sim-reset-body',
    'headers and half of the body, then closes the connection',
    () => reply({ delivery: 'reset' }),
  ],
  [
    'sim-truncated',
    'well-formed HTTP, but JSON cut in the middle or a stream without its end',
    () => reply({ delivery: 'truncate' }),
  ],
  ['sim-html', '200 with a web page', () => ({ kind: 'html' })],
  ['sim-garbage', '200 with JSON of the wrong shape', () => ({ kind: 'garbage' })],
  [
    'sim-stream-error',
    'an error in the middle of a 200 stream; 500 when not streamed',
    () => ({ kind: 'stream-error', reply: reply() }),
  ],
  [
    'sim-stream-error-<n>',
    'the same after n numbered deltas, 20 ms apart',
    (n) => ({ kind: 'stream-error', reply: broken(n) }),
  ],
  [
    'sim-cut-<n>',
    'n numbered deltas, 20 ms apart, then closes the connection; sim-reset-body when not streamed',
    (n) => broken(n, 'reset'),
  ],
  [
    'sim-stall-<n>',
    'n numbered deltas, 20 ms apart, then silence; sim-hang-body when not streamed',
    (n) => broken(n, 'hang'),
  ],
  [
    'sim-unfinished-<n>',
    'n numbered deltas, 20 ms apart, then the end of the body; sim-truncated when not streamed',
    (n) => broken(n, 'truncate'),
  ],
  [
    'sim-malformed-<n>',
    'n numbered deltas, 20 ms apart, then an event that nobody can read; sim-truncated when not streamed',
    (n) => broken(n, 'malformed'),
  ],
  [
    'sim-deltas-<n>-<length>',
    'n deltas of so many characters, as fast as they are read',
    (n, length) => reply({ says: { pieces: n, length } }),
  ],
  [
    'sim-deltas-wide-<n>-<length>',
    'the same, of characters that take three bytes',
    (n, length) => reply({ says: { pieces: n, length, of: '…' } }),
  ],
  [
    'sim-deltas-<n>-<length>-<ms>',
    'the same, ms apart',
    (n, length, ms) => reply({ says: { pieces: n, length }, gapMs: ms }),
  ],
  [
    'sim-timestamps-<n>-<ms>',
    'n deltas, ms apart, each the milliseconds since the epoch at which it was sent; zeros when not streamed, and in frames that are not text',
    (n, ms) => reply({ says: { timestamps: n }, gapMs: ms }),
  ],
  ending('failed', "a 200 that says that it failed, at openai's Responses; elsewhere 500"),
  ['sim-no-usage', 'echo that says nothing of the tokens it took', () => reply({ withoutUsage: true })],
  ending('empty', 'no choices, content blocks or candidates'),
  ending('null', 'a choice whose text is null, absent or blank'),
  ending('length', 'text cut at the token limit'),
  ending('blocked', 'withheld by the content filter'),
  ending('blocked-reply', 'cut by the content filter in the middle of the text'),
  ending('refused', 'refused by the model'),
  [
    'sim-tools',
    'a call of the first tool, or of the one that the choice names, with arguments that fit; echo without tools, with the choice none, and of results',
    () => calls(),
  ],
  [
    'sim-tools-parallel',
    'a text, and one call of each tool; of the first one where parallel calls are off',
    () => calls({ amount: 'each' }),
  ],
  ['sim-tools-<n>', 'n calls of the first tool', (n = 0) => calls({ amount: n })],
  [
    'sim-tool-cut-<n>',
    'a text, and a call that the token limit cuts after n pieces of its arguments',
    (n = 0) => calls({ cutAfter: n }),
  ],
  [
    'sim-tool-slow-<n>-<ms>',
    'a call whose arguments come in n pieces, ms apart; at once when not streamed',
    (n = 0, ms = 0) => calls({ pieces: n }, { gapMs: ms }),
  ],
  [
    'sim-tool-gate-<n>',
    "n pieces of a call's arguments, and n more (the call for 0) when the gate of this name opens; nothing before that for 0, or when not streamed",
    (n = 0) => calls({ pieces: 2 * n || 1 }, { delivery: 'gated', ...(n === 0 && { afterDeltas: 0 }) }),
  ],
  [
    'sim-tool-drip-<ms>',
    'sim-tools, one byte per so many milliseconds',
    (ms = 0) => calls({}, { delivery: 'drip', gapMs: ms }),
  ],
  [
    'sim-tool-signed',
    'sim-tools with signatures; refuses those that come back changed',
    () => calls({ isSigned: true }, { refuses: 'signature' }),
  ],
  [
    'sim-always-thinks',
    'sim-tools; anthropic and bedrock refuse a choice that forces a call',
    () => calls({}, { refuses: 'forced-choice' }),
  ],
  ['sim-tool-unknown', 'a call of a tool that was not offered', () => calls({ broken: 'unknown' })],
  ['sim-tool-garbage', 'a call whose arguments are no JSON object', () => calls({ broken: 'garbage' })],
  ['sim-tool-nameless', 'a call without a name', () => calls({ broken: 'nameless' })],
  ['sim-no-hints', 'echo; refuses each parameter that only tunes a reply', () => reply({ refuses: 'hints' })],
  ['sim-format-broken', 'echo, also where JSON is asked for', () => reply({ withoutJson: true })],
  ...thinkingRows,
];

const number = '(\\d{1,7})';
const placeholders: Record<string, string> = {
  status: '([45]\\d\\d)',
  n: '(\\d{1,5})',
  key: '([\\w.-]+)',
  word: '([A-Z_]+)',
};

const table = rows.map(([name, _, behave]) => ({
  pattern: new RegExp(`^${name.replace(/<(\w+)>/g, (_, word: string) => placeholders[word] ?? number)}$`),
  behave,
}));

/** The documentation of every behaviour. */
export const behaviourList = rows.map(([model, does]) => ({ model, does }));

/** Whether a model waits at a gate of its name. */
export function isGated(model: string): boolean {
  const behaviour = findBehaviour(model);
  return behaviour?.kind === 'reply' && behaviour.delivery === 'gated';
}

/** A number, or the word of the one row that asks for a word. */
const readValue = (text: string) => (/^\d+$/.test(text) ? Number(text) : text) as number;

/** The behaviour of a model, if there is one. Of its name the text after an `@` only keeps the calls of tests apart. */
export function findBehaviour(model: string): Behaviour | undefined {
  const [name = ''] = model.split('@', 1);
  for (const { pattern, behave } of table) {
    const match = pattern.exec(name);
    if (match !== null) return behave(...match.slice(1).map(readValue));
  }
  return undefined;
}
