import { calls, type Row, reply } from './behaviour.js';

/** Models that think, or are silent while they write. */
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
    'sim-verbose-<n>',
    'n deltas of one character, each in an event of 64 KiB; in small ones at bedrock',
    (n = 0) => reply({ says: { pieces: n, length: 1 }, padding: 65_536 }),
  ],
];
