import type { Ending } from './wire-format.js';

/**
 * How the bytes of a reply reach the client: all at once; half, and the rest when the gate of the model opens or after
 * a pause; half, and then none while the connection stays open, a reset, the provider's error or malformed bytes; half
 * as if it were all; byte by byte; without end.
 */
export type Delivery =
  | ('whole' | 'gated' | 'lull' | 'hang' | 'reset' | 'error' | 'malformed')
  | ('truncate' | 'drip' | 'endless');

/** The simulator's reaction to a call: a reply with status 200 unless it fails, or refuses what is asked. */
export interface Behaviour {
  /** The conversation; the last user turn; so many numbers, texts of one length, or timestamps; what a script says. */
  readonly says: 'echo' | 'verbatim' | 'numbers' | 'characters' | 'times' | 'script';
  readonly amount: number;
  readonly length: number;
  readonly character: string;
  readonly ending: Ending;
  readonly delivery: Delivery;
  readonly delayMs: number;
  /** The wait between two pieces (two bytes of a drip). */
  readonly gapMs: number;
  /** The pause of a lull in the middle. */
  readonly lullMs: number;
  /** The deltas after which a stream goes wrong or waits; absent means half of them, or all when it is cut short. */
  readonly afterDeltas?: number;
  readonly withoutUsage?: boolean;
  /** The text is not the JSON that was asked for. */
  readonly withoutJson?: boolean;
  /** How many parts follow the first, where the provider continues a reply. */
  readonly hops?: number;
  /** The provider's word for the end. */
  readonly endsAs?: string;
  /** Before its text and before its calls it thinks; aloud in words, also where they are not asked for. */
  readonly thinks?: boolean | 'aloud';
  /** The fate of Claude's thinking that comes back elsewhere than it was; absent where that is not looked at. */
  readonly unboundThinking?: 'refused' | 'dropped';
  /** The work that takes time behind the opening of a stream, and before the whole reply when not streamed. */
  readonly worksOn?: 'thinking' | 'arguments';
  readonly workMs: number;
  /** It works without the provider's signs of life. */
  readonly isSilent?: boolean;
  /** The calls of tools: one of each, or so many of the first one or of the one that the choice names. */
  readonly calls: 'each' | number;
  readonly brokenCalls?: 'unoffered' | 'unreadable' | 'nameless';
  readonly isSigned?: boolean;
  /** In how many pieces the arguments are streamed; absent means in a few. */
  readonly pieces?: number;
  /** The pieces of the arguments after which the token limit cuts them. */
  readonly cutAfter?: number;
  /** The part of a request that is refused with the provider's error. */
  readonly refuses?: 'hints' | 'forced-choice' | 'signature' | 'reasoning' | 'effort' | 'lost-reasoning';
  /** The failure in place of the reply, to `times` calls after the first `after` ones. */
  readonly fails?:
    | ('status' | 'denied' | 'quota' | 'not-ready' | 'too-long' | 'rejected')
    | ('hang' | 'reset' | 'html' | 'misshapen');
  readonly after: number;
  readonly times: number;
  readonly status: number;
  readonly retryAfterS?: number;
  /** The class of a refusal, by the name that Claude Code has for it. */
  readonly rejection?: string;
  /** Which of the provider's errors for what is spent. */
  readonly quota: number;
  readonly maxTokens: number;
}

const plain: Behaviour = {
  says: 'echo',
  amount: 0,
  length: 0,
  character: 'x',
  ending: 'stop',
  delivery: 'whole',
  delayMs: 0,
  gapMs: 0,
  lullMs: 0,
  workMs: 0,
  calls: 0,
  after: 0,
  times: Number.POSITIVE_INFINITY,
  status: 500,
  quota: 1,
  maxTokens: 0,
};

/** A part of a name with `<…>` for its numbers, what it does, and its piece of a behaviour. */
type Row = readonly [name: string, does: string, piece: (...numbers: number[]) => Partial<Behaviour>];

const numbers = (amount: number) => ({ says: 'numbers', amount }) as const;
const characters = (amount: number, length: number) => ({ says: 'characters', amount, length }) as const;
/** Numbers, 20 ms apart, and what becomes of the stream behind the first half of them. */
const broken = (afterDeltas: number, delivery: Delivery) => {
  return { ...numbers(2 * afterDeltas), gapMs: 20, afterDeltas, delivery };
};
const gate = (afterDeltas: number) => ({ delivery: 'gated', afterDeltas }) as const;
const gatedNumbers = (amount: number) => ({ ...numbers(2 * amount || 1), ...gate(amount) });
/** A gate after half of the deltas: those of a call are not the same number everywhere. */
const gatedPieces = (amount: number): Partial<Behaviour> =>
  amount === 0 ? { pieces: 1, ...gate(0) } : { pieces: 2 * amount, delivery: 'gated' };
const tooMany = { fails: 'status', status: 429 } as const;
const thinking = { thinks: true, calls: 1, worksOn: 'thinking' } as const;
const burst = { calls: 1, pieces: 1, worksOn: 'arguments' } as const;
const bound = (unboundThinking: 'refused' | 'dropped') =>
  ({ thinks: true, calls: 'each', unboundThinking }) as const;
const aloud = { thinks: 'aloud', refuses: 'lost-reasoning' } as const;

const rows: readonly Row[] = [
  ['echo', "shows the conversation that it read, within the call's token limit", () => ({ says: 'echo' })],
  ['verbatim', "says the last user turn's text", () => ({ says: 'verbatim' })],
  ['script', 'does what the script in the newest user text says, a step a turn', () => ({ says: 'script' })],
  ['say-<n>', 'says n numbers, a delta each', (n) => numbers(n)],
  ['say-<n>-<length>', 'says n deltas of so many characters', (n, length) => characters(n, length)],
  ['wide', 'has characters of three bytes in say-<n>-<length>', () => ({ character: '…' })],
  ['times-<n>', 'says in n deltas when each was sent', (amount) => ({ says: 'times', amount })],
  ['think-<ms>', 'thinks so long, and calls a tool', (workMs) => ({ ...thinking, workMs })],
  ['burst-<ms>', 'calls a tool, with all arguments so much later', (workMs) => ({ ...burst, workMs })],
  ['silent', 'gives no sign of life behind its first event', () => ({ isSilent: true })],
  ['aloud', 'thinks in `reasoning_content`, which has to come back', () => aloud],
  ['bound', 'thinks, says and calls; Claude refuses its thinking elsewhere', () => bound('refused')],
  ['drops', 'the same, but drops such thinking unsaid, and counts it', () => bound('dropped')],
  ['call-<n>', 'calls the first or the chosen tool n times; never after results', (calls) => ({ calls })],
  ['calls', 'says a text, and calls each tool', () => ({ calls: 'each' })],
  ['pieces-<n>', 'has n pieces of arguments', (pieces) => ({ pieces })],
  ['limit-<n>', 'says a text, and the token limit cuts its call after n pieces', (n) => ({ cutAfter: n })],
  ['signed', 'signs its calls; refuses changed ones', () => ({ isSigned: true, refuses: 'signature' })],
  ['unoffered', 'calls a tool that was not offered', () => ({ brokenCalls: 'unoffered' })],
  ['unreadable', 'calls with arguments that are no JSON object', () => ({ brokenCalls: 'unreadable' })],
  ['nameless', 'calls without a name', () => ({ brokenCalls: 'nameless' })],
  ['latency-<ms>', 'begins after so many milliseconds', (ms) => ({ delayMs: ms })],
  ['gap-<ms>', 'waits so long between two deltas', (ms) => ({ gapMs: ms })],
  ['lull-<ms>', 'pauses in the middle, with no sign of life', (ms) => ({ delivery: 'lull', lullMs: ms })],
  ['drip-<ms>', 'sends one byte per so many milliseconds', (ms) => ({ delivery: 'drip', gapMs: ms })],
  ['gate-<n>', 'says n numbers, and n more (one for 0) when the gate of this name opens', gatedNumbers],
  ['gate-pieces-<n>', 'the same with pieces of arguments', gatedPieces],
  ['endless', 'never ends, also a status', () => ({ delivery: 'endless', ...characters(1, 16_384) })],
  ['status-<status>', "the provider's error", (status) => ({ fails: 'status', status })],
  ['retry-after-<seconds>', '429 with Retry-After', (retryAfterS) => ({ ...tooMany, retryAfterS })],
  ['denied', '401 with a text that names the model', () => ({ fails: 'denied' })],
  ['quota-<n>', "the provider's n-th error for what is spent", (quota) => ({ fails: 'quota', quota })],
  ['not-ready', "the provider's error for a model that is being loaded", () => ({ fails: 'not-ready' })],
  ['context-<n>', 'refuses more than n tokens', (n) => ({ fails: 'too-long', maxTokens: n })],
  ['html', '200 with a web page', () => ({ fails: 'html' })],
  ['misshapen', '200 with JSON of the wrong shape', () => ({ fails: 'misshapen' })],
  ['hang', 'never answers', () => ({ fails: 'hang' })],
  ['reset', 'resets the connection before any answer', () => ({ fails: 'reset' })],
  ['first-<n>', 'fails at the first n calls only', (times) => ({ times })],
  ['after-<n>', 'fails after the first n calls only', (after) => ({ after })],
  ['cut-<n>', 'says n numbers, 20 ms apart, then closes the connection', (n) => broken(n, 'reset')],
  ['stall-<n>', 'the same, then silence', (n) => broken(n, 'hang')],
  ['unfinished-<n>', 'the same, then the end of the body', (n) => broken(n, 'truncate')],
  ['malformed-<n>', 'the same, then an event that cannot be read', (n) => broken(n, 'malformed')],
  ['error-<n>', 'the same, then an error; 500 when not streamed', (n) => broken(n, 'error')],
  ['hang-body', 'headers and half of the body, then silence', () => ({ delivery: 'hang' })],
  ['reset-body', 'the same, then closes the connection', () => ({ delivery: 'reset' })],
  ['truncated', 'JSON cut in the middle, or a stream without its end', () => ({ delivery: 'truncate' })],
  ['error', 'an error in the middle of a 200 stream; 500 when not streamed', () => ({ delivery: 'error' })],
  ['empty', 'no choices, content blocks or candidates', () => ({ ending: 'empty' })],
  ['null', 'a choice whose text is null, absent or blank', () => ({ ending: 'null' })],
  ['length', 'text cut at the token limit', () => ({ ending: 'length' })],
  ['blocked', 'withheld by the content filter', () => ({ ending: 'blocked' })],
  ['blocked-reply', 'cut by the content filter in the middle', () => ({ ending: 'blocked-reply' })],
  ['refused', 'refused by the model', () => ({ ending: 'refused' })],
  ['failed', 'a 200 that says that it failed, at Responses; elsewhere 500', () => ({ ending: 'failed' })],
  ['end-<word>', 'ends with this word of its provider, not at openai', (word) => ({ endsAs: String(word) })],
  ['parts-<n>', 'at vertexai replies in n parts beside the first', (hops) => ({ hops })],
  ['no-usage', 'says nothing of the tokens it took', () => ({ withoutUsage: true })],
  ['no-json', 'says no JSON, also where it is asked for', () => ({ withoutJson: true })],
  ['no-hints', 'refuses each parameter that only tunes a reply', () => ({ refuses: 'hints' })],
  ['no-effort', 'calls a tool; takes no effort beside tools', () => ({ calls: 1, refuses: 'effort' })],
  ['no-thinking', 'takes no reasoning, and at bedrock no marks of caches', () => ({ refuses: 'reasoning' })],
  ['no-forcing', 'at Claude takes no choice that forces a call', () => ({ refuses: 'forced-choice' })],
];

/** The documented names that are parts. */
const ownNames =
  `echo verbatim script latency-<ms> gate-<n> status-<status> retry-after-<seconds> quota-<n> not-ready context-<n>
  hang hang-body drip-<ms> endless reset reset-body truncated html cut-<n> stall-<n> unfinished-<n>
  malformed-<n> failed no-usage empty null length blocked blocked-reply refused no-hints think-<ms> bound
  drops burst-<ms> no-effort end-<word>`.split(/\s+/);

/** The documented names, each as the parts that it stands for. */
const names: Readonly<Record<string, string>> = {
  ...Object.fromEntries(ownNames.map((name) => [`sim-${name}`, name])),
  'sim-stream-<n>-<ms>': 'say-<n>.gap-<ms>',
  'sim-fail-<n>-<status>': 'status-<status>.first-<n>',
  'sim-fail-<n>-<status>-<key>': 'status-<status>.first-<n>',
  'sim-good-<n>-<status>-<key>': 'status-<status>.after-<n>',
  'sim-limit-<n>-<seconds>-<key>': 'retry-after-<seconds>.first-<n>',
  'sim-denied-<n>-<key>': 'denied.first-<n>',
  'sim-hang-<n>-<key>': 'hang.first-<n>',
  'sim-drip': 'drip-1000',
  'sim-endless-<status>': 'status-<status>.endless',
  'sim-garbage': 'misshapen',
  'sim-stream-error': 'error',
  'sim-stream-error-<n>': 'error-<n>',
  'sim-deltas-<n>-<length>': 'say-<n>-<length>',
  'sim-deltas-wide-<n>-<length>': 'say-<n>-<length>.wide',
  'sim-deltas-<n>-<length>-<ms>': 'say-<n>-<length>.gap-<ms>',
  'sim-timestamps-<n>-<ms>': 'times-<n>.gap-<ms>',
  'sim-tools': 'call-1',
  'sim-tools-parallel': 'calls',
  'sim-tools-<n>': 'call-<n>',
  'sim-tool-cut-<n>': 'call-1.limit-<n>',
  'sim-tool-slow-<n>-<ms>': 'call-1.pieces-<n>.gap-<ms>',
  'sim-tool-gate-<n>': 'call-1.gate-pieces-<n>',
  'sim-tool-drip-<ms>': 'call-1.drip-<ms>',
  'sim-tool-signed': 'call-1.signed',
  'sim-always-thinks': 'call-1.no-forcing',
  'sim-tool-unknown': 'call-1.unoffered',
  'sim-tool-garbage': 'call-1.unreadable',
  'sim-tool-nameless': 'call-1.nameless',
  'sim-format-broken': 'no-json',
  'sim-think-silent-<ms>': 'think-<ms>.silent',
  'sim-foreign-deepseek': 'call-1.aloud',
  'sim-plain': 'no-thinking',
  'sim-continues-<n>': 'parts-<n>',
};

const placeholders: Readonly<Record<string, string>> = {
  status: '[45]\\d\\d',
  n: '\\d{1,5}',
  key: '[\\w.-]+',
  word: '[A-Za-z_]+',
};
const expressionOf = (name: string): RegExp =>
  new RegExp(`^${name.replace(/<(\w+)>/g, (_, word) => `(?<${word}>${placeholders[word] ?? '\\d{1,7}'})`)}$`);

const parts = rows.map(([name, , piece]) => ({ expression: expressionOf(name), piece }));
const documented = Object.entries(names).map(([name, means]) => ({ expression: expressionOf(name), means }));

/** Each part of a name with what it does. */
export const partList = rows.map(([part, does]) => ({ part, does }));

/** The documented names: what each does, or the parts that it stands for. */
export const behaviourList = Object.entries(names).map(([model, means]) => {
  return { model, does: partList.find(({ part }) => part === means)?.does ?? `the same as sim-${means}` };
});

/**
 * The behaviour of a model, if there is one: of a documented name, or of `sim-` and parts joined by dots, of which a
 * later one wins. The text after an `@` only keeps the counters, gates and calls of tests apart.
 */
export function findBehaviour(model: string): Behaviour | undefined {
  const [name = ''] = model.split('@', 1);
  const pieces = meaningOf(name)?.split('.').map(pieceOf) ?? [undefined];
  return pieces.includes(undefined) ? undefined : Object.assign({}, plain, ...pieces);
}

/** Whether a model waits at a gate of its name. */
export const isGated = (model: string): boolean => findBehaviour(model)?.delivery === 'gated';

function meaningOf(name: string): string | undefined {
  for (const { expression, means } of documented) {
    const match = expression.exec(name);
    if (match) return means.replace(/<(\w+)>/g, (_, word) => match.groups?.[word] ?? '');
  }
  return name.startsWith('sim-') ? name.slice('sim-'.length) : undefined;
}

function pieceOf(part: string): Partial<Behaviour> | undefined {
  for (const { expression, piece } of parts) {
    const match = expression.exec(part);
    // The one word of the table is passed on as if it were a number.
    if (match)
      return piece(...match.slice(1).map((text) => (/^\d+$/.test(text) ? Number(text) : text) as number));
  }
  return undefined;
}
