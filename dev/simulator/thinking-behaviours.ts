import { calls, type Row, reply } from './behaviour.js';

const thinks = (ms = 0, isSilent = false) =>
  calls({}, { thinks: true, lull: { ms, of: 'thinking', isSilent } });
const bound = (unboundThinking: 'refused' | 'dropped') =>
  calls({ amount: 'each' }, { thinks: true, unboundThinking });
const deepseek = calls({}, { thinks: 'aloud', refuses: 'lost-reasoning' });

/** Models that think, or do not, and what comes of that. */
export const thinkingRows: readonly Row[] = [
  [
    'sim-think-<ms>',
    'sim-tools that thinks so long, with signs of life; in words if asked',
    (ms) => thinks(ms),
  ],
  ['sim-think-silent-<ms>', 'the same, silent behind its first event', (ms) => thinks(ms, true)],
  [
    'sim-bound',
    'a text and a call of each tool, with thinking before both; Claude refuses it behind another conversation or a gap',
    () => bound('refused'),
  ],
  ['sim-drops', 'the same, but drops such thinking unsaid, and counts it', () => bound('dropped')],
  [
    'sim-burst-<ms>',
    'a call whose arguments come at once, after so many milliseconds',
    (ms = 0) => calls({ pieces: 1 }, { lull: { ms, of: 'arguments' } }),
  ],
  ['sim-foreign-deepseek', 'sim-tools with `reasoning_content`, which has to come back', () => deepseek],
  [
    'sim-plain',
    "echo; openai's Responses includes no reasoning, bedrock takes neither that nor marks of caches",
    () => reply({ refuses: 'reasoning' }),
  ],
  [
    'sim-no-effort',
    'sim-tools; Chat Completions takes no effort with tools',
    () => calls({}, { refuses: 'effort' }),
  ],
  ['sim-continues-<n>', 'echo, at vertexai in n parts beside the first', (n) => reply({ hops: n })],
  ['sim-end-<word>', 'echo that ends with this word of vertexai', (word) => reply({ endsAs: String(word) })],
];
