import { describe, expect, it } from 'vitest';
import { parseCompletionBody } from '../../api/chat-apis/openai-chat/completion-body.js';
import { ignoredFieldsOf, toCompletionRequest } from '../../api/chat-apis/openai-chat/completion-request.js';
import { RequestImages } from '../../api/chat-apis/openai-chat/images.js';
import { type ProviderId, providerIds } from '../../shared/contracts/contract.js';
import { Failure } from '../../shared/failures.js';
import { leastMsOf, unitMs } from './support/work.js';

/**
 * The processor time that the reading of one request may take, in units: each takes here what it takes to parse a
 * megabyte of numbers. The slowest takes 7; what grows faster than its request takes thousands.
 */
const maxUnits = 70;

const user = { role: 'user', content: 'Hello' };
const times = <T>(count: number, make: (n: number) => T): T[] =>
  Array.from({ length: count }, (_, n) => make(n));
const tool = (parameters: unknown, name = 'a') => ({
  type: 'function',
  function: { name, parameters, strict: true },
});
const called = (id: string, text = '{}') => ({
  ...{ id, type: 'function', function: { name: 'a', arguments: text } },
});
const withArguments = (...texts: string[]) => ({
  messages: [
    { role: 'assistant', content: null, tool_calls: texts.map((text, n) => called(`${n}`, text)) },
    ...texts.map((_, n) => ({ role: 'tool', tool_call_id: `${n}`, content: 'x' })),
  ],
});
const manyCalls = (message: number) => {
  const ids = times(125, (n) => `${message}-${n}`);
  return [
    { role: 'assistant', tool_calls: ids.map((id) => called(id)) },
    ...ids.map((id) => ({ role: 'tool', tool_call_id: id, content: 'x' })),
  ];
};
const withImages = (urls: string[]) => ({
  messages: [{ role: 'user', content: urls.map((url) => ({ type: 'image_url', image_url: { url } })) }],
});
/** Cannot be made a text. */
const textless = { toString: 1, valueOf: 1 };
const tiny = (n: number) => Buffer.from(`GIF89a${String(n).padStart(6, '0')}`).toString('base64');
const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);

const names = (count: number) => Object.fromEntries(times(count, (n) => [`p${n}`, { type: 'string' }]));
/** Each leads to all the others. */
const tangled = Object.fromEntries(
  times(60, (n) => [`d${n}`, { anyOf: times(60, (m) => ({ $ref: `#/$defs/d${(n + m) % 60}` })) }]),
);

const cases: [string, object, RegExp | undefined][] = [
  [
    '128 tools of 60 KB',
    { tools: times(128, (n) => tool({ title: 'x'.repeat(60_000) }, `a${n}`)) },
    /exceeds 262144 bytes/,
  ],
  ['4,900 properties', { tools: [tool({ type: 'object', properties: names(4900) })] }, undefined],
  [
    'references in all directions',
    { tools: [tool({ type: 'object', $defs: tangled, properties: { a: { $ref: '#/$defs/d0' } } })] },
    /itself|undefined/,
  ],
  [
    'an allOf of 1,500 objects',
    {
      tools: [
        tool({
          allOf: times(1500, (n) => ({ type: 'object', properties: { [`p${n}`]: { type: 'string' } } })),
        }),
      ],
    },
    undefined,
  ],
  ['a reference of 8,000,000 steps', { tools: [tool({ $ref: `#${'/'.repeat(8_000_000)}` })] }, /refer/],
  [
    'keywords that are no texts',
    {
      tools: [tool({ ...names(1), type: 'object', maxLength: 1, pattern: textless, description: textless })],
    },
    undefined,
  ],
  ['arguments of 10,000 levels', withArguments(`{"a":${nested(10_000)}}`), /nests deeper than 128 levels/],
  [
    'arguments of a million values in all',
    withArguments(...times(100, () => `{"a":[${'0,'.repeat(5000)}0]}`)),
    /more than 20000 values/,
  ],
  [
    'arguments of 20,000 keys',
    withArguments(`{${times(19_000, (n) => `"${n}":{}`).join()}}`),
    /more than 20000 values/,
  ],
  ['arguments that are megabytes of nothing', withArguments(`{${' '.repeat(7_000_000)}}`), undefined],
  ['arguments that do not end', withArguments(`{"a":"${'\\'.repeat(1_000_000)}`), undefined],
  ['2,100 results', { messages: times(17, manyCalls).flat() }, /beyond the limit of 2000 results/],
  [
    'calls with nothing right',
    { messages: times(70, () => ({ role: 'assistant', tool_calls: times(128, () => ({})) })) },
    /is required/,
  ],
  [
    'parts with nothing right',
    { messages: [{ role: 'user', content: times(9000, () => ({})) }] },
    /must be text/,
  ],
  ['18,000 unknown fields', { ...Object.fromEntries(times(18_000, (n) => [`x${n}`, 0])) }, undefined],
  [
    'a data URL of a million commas',
    {
      messages: [
        {
          role: 'user',
          content: [{ type: 'image_url', image_url: { url: `data:${','.repeat(1_000_000)}` } }],
        },
      ],
    },
    /base64/,
  ],
  ['4,900 images', withImages(times(4900, (n) => `data:;base64,${tiny(n)}`)), /GIF|undefined/],
  [
    'addresses whose hosts are no ASCII',
    withImages(
      times(500, (m) => `https://${String.fromCharCode(...times(2000, (n) => 0x4e00 + m + n * 7))}/`),
    ),
    /data: URL/,
  ],
];

/** The first error of the request; undefined if there is none. */
function read(fields: object, provider: ProviderId): string {
  try {
    const body = parseCompletionBody({ model: `${provider}/m`, messages: [user], ...fields }, 10_000);
    const { parameters } = toCompletionRequest(body, undefined, { images: new RequestImages(5_242_880) });
    ignoredFieldsOf(provider, parameters);
    return 'undefined';
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return `${error.facts.errors?.[0]?.detail}`;
  }
}

describe('a hostile request', () => {
  it.each(cases)('has %s → is read or refused in a moment', (_, fields, refusal) => {
    for (const provider of providerIds) {
      const said = read(fields, provider);
      if (refusal) expect(said, provider).toMatch(refusal);
      else expect(said, provider).toBe('undefined');
      expect(leastMsOf(() => read(fields, provider), 3) / unitMs(), provider).toBeLessThan(maxUnits);
    }
  });
});
