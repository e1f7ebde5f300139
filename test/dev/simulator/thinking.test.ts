import { afterAll, describe, expect, it } from 'vitest';
import { startSimulator } from '../../../dev/simulator/server.js';
import type { ProviderId } from '../../../shared/contracts/contract.js';
import type { Turn } from '../../../shared/conversation.js';
import { hello, raw, result, talk } from '../../support/apis.js';
import { type Asked, city, requestOf, send } from './requests.js';

const simulator = await startSimulator({ port: 0 });
afterAll(() => simulator.close());

type Json = Record<string, unknown>;
type Block = Json & { type?: string; text?: string };

const weather = { name: 'weather', parameters: city };
const tokens = (limit: number): Record<ProviderId, Json> => ({
  openai: { max_completion_tokens: limit },
  anthropic: { max_tokens: limit },
  bedrock: { inferenceConfig: { maxTokens: limit } },
  vertexai: { generationConfig: { maxOutputTokens: limit } },
});

/** The text of an answer; `more` are fields of the body. */
async function ask(provider: ProviderId, asked: Asked, more: Json = {}): Promise<string> {
  const request = requestOf(provider, asked);
  const body = { ...request.body, ...tokens(1000)[provider], ...more };
  return (await send(simulator.url, { ...request, body })).text();
}

const askWhole = async (provider: ProviderId, asked: Asked, more?: Json) =>
  JSON.parse(await ask(provider, asked, more));

const signs: Record<ProviderId, RegExp> = {
  openai: /^: OPENROUTER PROCESSING$/gm,
  anthropic: /^event: ping$/gm,
  bedrock: /"reasoningContent":\{"text":""\}/g,
  vertexai: /^:.*$/gm,
};

describe('a model that thinks', () => {
  it.each<[ProviderId, number, number]>([
    ['openai', 10, 0],
    // One ping stands in each of its streams.
    ['anthropic', 11, 1],
    ['bedrock', 10, 0],
    ['vertexai', 0, 0],
  ])('at %s -> gives %d signs of life, and %d where it is silent', async (provider, alive, silent) => {
    const count = async (model: string) =>
      (await ask(provider, { model, stream: true })).match(signs[provider])?.length ?? 0;
    expect([await count('sim-think-20'), await count('sim-think-silent-20')]).toEqual([alive, silent]);
  });

  it('-> gives half of its signs before its thinking begins', async () => {
    const text = await ask('anthropic', { model: 'sim-think-20', stream: true });
    const [before = ''] = text.split('event: content_block_start');
    expect(before.match(signs.anthropic)).toHaveLength(5);
  });

  it.each<[ProviderId, object]>([
    [
      'openai',
      {
        choices: [{ message: { content: '' }, finish_reason: 'length' }],
        usage: { completion_tokens: 100, completion_tokens_details: { reasoning_tokens: 100 } },
      },
    ],
    [
      'anthropic',
      { content: [{ type: 'thinking' }], stop_reason: 'max_tokens', usage: { output_tokens: 100 } },
    ],
    ['bedrock', { stopReason: 'max_tokens', usage: { outputTokens: 100 } }],
    [
      'vertexai',
      {
        candidates: [{ finishReason: 'MAX_TOKENS' }],
        usageMetadata: { candidatesTokenCount: 0, thoughtsTokenCount: 100 },
      },
    ],
  ])('with a small limit at %s -> says nothing, and has used it', async (provider, answer) => {
    const asked = { model: 'sim-think-0', tools: [weather] };
    expect(await askWhole(provider, asked, tokens(100)[provider])).toMatchObject(answer);
  });

  const adaptive = { thinking: { type: 'adaptive', display: 'summarized' } };
  it.each<[ProviderId, Json]>([
    ['anthropic', adaptive],
    ['bedrock', { additionalModelRequestFields: adaptive }],
    ['vertexai', { generationConfig: { thinkingConfig: { includeThoughts: true } } }],
  ])('at %s -> thinks in words where they are asked for', async (provider, more) => {
    const asked = { model: 'sim-think-0' };
    expect(await ask(provider, asked)).not.toContain('I think.');
    expect(await ask(provider, asked, more)).toContain('I think.');
    expect(await ask(provider, { ...asked, stream: true }, more)).toMatch(/I think\.|I th/);
  });
});

it('a call whose arguments come at once -> is named before, and has signs of life between', async () => {
  const text = await ask('anthropic', { model: 'sim-burst-20', stream: true, tools: [weather] });
  const [, behind = ''] = text.split('"name":"weather"');
  expect(behind.split('partial_json')[0]?.match(signs.anthropic)).toHaveLength(11);
});

describe('thinking that is bound', () => {
  const system = 'Be brief.';
  const tools = [{ name: 'weather', input_schema: city }];

  /** A block as a client sends it back. */
  const sent = ({ citations: _, caller: __, ...block }: Block): Block => block;

  async function reply(turns: Turn[], more: Json = {}) {
    const answer = await askWhole('anthropic', { model: 'sim-bound', turns }, { system, tools, ...more });
    return { content: answer.content?.map(sent) as Block[], words: answer.error?.message as string };
  }

  /** Two loops: the blocks of both replies, and a conversation that has been changed. */
  async function loop(model = 'sim-bound') {
    const { content: first } = await reply([hello], { model });
    const results = [result(String(first.at(-1)?.id), '1')];
    const { content: second } = await reply(talk(first.map(raw), results), { model });
    const again = (blocks: Block[]) => talk(blocks.map(raw), results, second.map(raw), 'More');
    return { first, second, again };
  }

  it('-> stands before a text and before a call, and is taken where it was', async () => {
    const { first, second, again } = await loop();
    expect(first.map(({ type }) => type)).toEqual(['thinking', 'text', 'thinking', 'tool_use']);
    expect(second.map(({ type }) => type)).toEqual(['thinking', 'text']);
    expect((await reply(again(first))).words).toBeUndefined();
  });

  it('-> may be left out up to the first block that is kept', async () => {
    const { first, again } = await loop();
    expect((await reply(again(first.slice(1)))).words).toBeUndefined();
    expect((await reply(again(first.filter(({ type }) => type !== 'thinking')))).words).toBeUndefined();
  });

  const elsewhere = 'messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to';
  it('behind other words, tools or messages, or changed -> is refused', async () => {
    const { first, again } = await loop();
    const changed = first.with(0, { ...first[0], thinking: 'I thought.' });
    const bent = [
      await reply(again(first), { system: 'Be long.' }),
      await reply(again(first), { tools: [...tools, { name: 'b', input_schema: city }] }),
      await reply([{ ...hello, content: 'Hi' }, ...again(first).slice(1)]),
      await reply(again(changed)),
      await reply(again(first.with(0, { ...first[0], signature: 'AAAA' }))),
    ];
    for (const { words } of bent) expect(words).toContain(elsewhere);
  });

  it('with a gap between blocks -> is refused', async () => {
    const { first, again } = await loop();
    const { words } = await reply(again(first.toSpliced(2, 1)));
    expect(words).toContain('messages.3.content.0');
    expect(words).toContain('The `thinking` block that preceded this one when it was created is missing');
  });

  it.each([
    ['sim-drops', 'sim-drops', { system: 'Be long.' }],
    ['sim-bound@a', 'sim-bound@b', {}],
  ])('of %s, which %s does not count -> is dropped unsaid', async (made, asked, more) => {
    const { first, again } = await loop(made);
    const { words } = await reply(again(first), { model: asked, ...more });
    expect(words).toBeUndefined();
    expect(simulator.calls.list().at(-1)?.droppedThinking).toBe(3);
  });

  it('at bedrock -> is refused by a model that does not think', async () => {
    const { output } = await askWhole('bedrock', { model: 'sim-bound', tools: [weather] });
    const blocks = output.message.content as Json[];
    expect(blocks.map((block) => Object.keys(block)[0])).toEqual([
      ...['reasoningContent', 'text', 'reasoningContent', 'toolUse'],
    ]);
    const turns = talk(blocks.slice(0, 2).map(raw), 'More');
    const wordsOf = async (model: string) => (await askWhole('bedrock', { model, turns })).message;
    expect(await wordsOf('sim-bound')).toContain('bound to a diff');
    expect(await wordsOf('sim-plain')).toContain('reasoningContent');
  });
});

describe('what a call marks to be cached', () => {
  const more = { turns: talk('Hi', 'Go on') };

  it('at anthropic -> is written first, and read by the next call that begins with it', async () => {
    const usage = async (turns: Asked['turns'] = []) =>
      (await askWhole('anthropic', { turns }, { cache_control: { type: 'ephemeral' } })).usage;
    const [first, second] = [await usage(more.turns.slice(0, 1)), await usage(more.turns)];
    expect([first.cache_read_input_tokens, second.cache_read_input_tokens]).toEqual([
      0,
      first.cache_creation_input_tokens,
    ]);
    expect(first.cache_creation_input_tokens).toBeGreaterThan(0);
    expect(second.cache_creation_input_tokens).toBeGreaterThan(0);
    expect((await askWhole('anthropic', more)).usage).toMatchObject({ cache_read_input_tokens: 0 });
  });

  it('at openai -> the same with a key', async () => {
    const details = async () =>
      (await askWhole('openai', more, { prompt_cache_key: 'k' })).usage.prompt_tokens_details;
    const [first, second] = [await details(), await details()];
    expect([first.cached_tokens, second.cached_tokens]).toEqual([0, first.cache_write_tokens]);
  });
});

describe('a reply of vertexai', () => {
  it('in parts -> ends each with a token for the next, and its limit counts over all of them', async () => {
    const asked = { model: 'sim-continues-2' };
    const parts: [string, string][] = [];
    const askParts = async (more: Json) => {
      const [candidate] = (await askWhole('vertexai', asked, more)).candidates;
      parts.push([candidate.content.parts[0].text, candidate.finishReason]);
      return { continuationToken: candidate.continuationToken as string };
    };
    await askParts(await askParts(await askParts({})));
    expect(parts.map(([, reason]) => reason)).toEqual(['CONTINUATION', 'CONTINUATION', 'STOP']);
    const whole = await askWhole('vertexai', { ...asked, model: 'sim-echo' });
    expect(parts.map(([text]) => text).join('')).toBe(whole.candidates[0].content.parts[0].text);
    const [[first] = ['']] = parts;
    const maxOutputTokens = Math.ceil(first.length / 4) + 1;
    await askParts({ ...(await askParts({})), generationConfig: { maxOutputTokens } });
    expect(parts.at(-1)).toEqual([expect.stringMatching(/^.{4,7}$/), 'MAX_TOKENS']);
  });

  it('of a model named after an end -> ends so', async () => {
    const answer = await askWhole('vertexai', { model: 'sim-end-IMAGE_SAFETY' });
    expect(answer.candidates[0].finishReason).toBe('IMAGE_SAFETY');
  });

  it('that thinks -> has a signature on its text, and in a stream on an empty part behind it', async () => {
    const signed = { thoughtSignature: expect.any(String) };
    const answer = await askWhole('vertexai', { model: 'sim-bound', tools: [weather] });
    const text = 'I call weather.';
    expect(answer.candidates[0].content.parts).toMatchObject([
      { ...signed, text },
      { ...signed, functionCall: {} },
    ]);
    const streamed = await ask('vertexai', { model: 'sim-bound', stream: true });
    const parts = [...streamed.matchAll(/^data: (.+)$/gm)].flatMap(
      ([, data = '']) => JSON.parse(data).candidates[0].content.parts,
    );
    expect(parts.filter(({ thoughtSignature }) => thoughtSignature)).toMatchObject([{ text: '' }]);
  });
});

describe('a server that speaks Chat Completions', () => {
  it('as DeepSeek -> thinks in words', async () => {
    const model = 'sim-foreign-deepseek';
    const { choices } = await askWhole('openai', { model });
    expect(choices[0].message.reasoning_content).toBe('I think.');
    expect(await ask('openai', { model, stream: true })).toContain('"reasoning_content":"I think."');
  });

  it('as DeepSeek -> refuses calls without what it thought before them', async () => {
    const asked = { model: 'sim-foreign-deepseek', tools: [weather] };
    const { choices } = await askWhole('openai', asked);
    const { content, tool_calls, reasoning_content } = choices[0].message;
    const next = (kept: Json) => {
      const turns = talk([raw({ content, tool_calls, ...kept })], [result(tool_calls[0].id, '1')]);
      return askWhole('openai', { ...asked, turns });
    };
    expect((await next({ reasoning_content })).error).toBeUndefined();
    expect((await next({})).error.message).toContain('must be passed back to the API.');
  });
});

it('a model without efforts for tools -> refuses tools at each effort, and the effort none', async () => {
  const model = 'sim-no-effort';
  const params = [
    await askWhole('openai', { model, tools: [weather], effort: 'high' }),
    await askWhole('openai', { model, tools: [weather] }),
    await askWhole('openai', { model, effort: 'none' }),
  ].map(({ error }) => error.param);
  expect(params).toEqual(['reasoning_effort', 'reasoning_effort', 'reasoning_effort']);
  expect((await askWhole('openai', { model, effort: 'high' })).error).toBeUndefined();
});
