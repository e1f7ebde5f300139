import { calls, type Row, reply } from './behaviour.js';

/** Models that think, or do not, and what comes of that. */
export const thinkingRows: readonly Row[] = [
  [
    'sim-think-<ms>',
    "sim-tools that thinks for so long, with the provider's signs of life; in words where they are asked for",
    (ms = 0) => calls({}, { thinks: true, lull: { ms, of: 'thinking' } }),
  ],
  [
    'sim-think-silent-<ms>',
    'the same, without a sign of life behind its first event',
    (ms = 0) => calls({}, { thinks: true, lull: { ms, of: 'thinking', isSilent: true } }),
  ],
  [
    'sim-bound',
    'a text and a call of each tool, with thinking before both; Claude refuses it behind another conversation or a gap',
    () => calls({ amount: 'each' }, { thinks: true, unboundThinking: 'refused' }),
  ],
  [
    'sim-drops',
    'the same, but such thinking is dropped unsaid, and counted in the list of calls',
    () => calls({ amount: 'each' }, { thinks: true, unboundThinking: 'dropped' }),
  ],
  [
    'sim-burst-<ms>',
    'a call whose arguments come at once, after so many milliseconds',
    (ms = 0) => calls({ pieces: 1 }, { lull: { ms, of: 'arguments' } }),
  ],
  [
    'sim-foreign-deepseek',
    'sim-tools that thinks in `reasoning_content` of Chat Completions, and refuses calls that come back without it',
    () => calls({}, { thinks: 'aloud', refuses: 'lost-reasoning' }),
  ],
  [
    'sim-plain',
    "echo of a model that does not think: openai's Responses includes no reasoning, bedrock takes neither that nor marks of caches",
    () => reply({ refuses: 'reasoning' }),
  ],
  [
    'sim-no-effort',
    "sim-tools; openai's Chat Completions refuses tools at each effort, and the effort none",
    () => calls({}, { refuses: 'effort' }),
  ],
  [
    'sim-refusal-<n>',
    'n words, and then the refusal of a classifier',
    (n = 0) => reply(n === 0 ? { ending: 'refused' } : { says: 2 * n, ending: 'blocked-reply' }),
  ],
  [
    'sim-continues-<n>',
    'echo, which vertexai sends in n parts beside the first, each for a token of the one before',
    (n = 0) => reply({ hops: n }),
  ],
  [
    'sim-end-<word>',
    'echo with the end that vertexai calls so, such as OTHER',
    (word: unknown) => reply({ endsAs: String(word) }),
  ],
];
