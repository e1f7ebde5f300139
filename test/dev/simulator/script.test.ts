import { afterAll, describe, expect, it } from 'vitest';
import { startSimulator } from '../../../dev/simulator/server.js';
import type { Turn } from '../../../shared/conversation.js';
import { textOfTape } from '../../../shared/protocol/parts.js';
import { raw, result, said, turn } from '../../support/apis.js';
import { providerSetups, replyModes } from '../../support/providers.js';
import { ask, callsOf, partsOfReply } from '../../support/replies.js';
import { type Asked, city, requestOf, send, type Wire, wires } from './requests.js';

const simulator = await startSimulator({ port: 0 });
afterAll(() => simulator.close());

const model = 'sim-script';
const tools = [{ name: 'weather', parameters: city }];
const look = (name: string) => ({ call: 'weather', with: { city: name, days: 2 } });
/** A user's turn with a script, as an agent sends it. */
const scripted = (steps: unknown) =>
  turn('user', [
    said('<system-reminder>[1]</system-reminder>'),
    said(`Go: sim: ${JSON.stringify(steps)} [2]`),
  ]);

const request = (wire: Wire, steps: unknown, asked: Asked = {}) =>
  send(simulator.url, requestOf(wire, { model, tools, turns: [scripted(steps)], ...asked }));
const readWhole = async (wire: Wire, steps: unknown, asked?: Asked) =>
  JSON.parse(await (await request(wire, steps, asked)).text());

describe.each(providerSetups)('a script at $name', ({ load }) => {
  it.each(replyModes)('-> is played a step a turn, $mode', async ({ stream }) => {
    const provider = await load(simulator.url);
    const steps = [look('Bern'), [{ think: 'Hm.' }, { say: 'And?' }, look('Rom')], { say: 'Sun ].' }];
    const turns: Turn[] = [scripted(steps)];
    const seen: unknown[] = [];
    for (let count = 0; count < 4; count += 1) {
      const reply = await ask(provider, { model, stream, turns, parameters: { tools } });
      const calls = callsOf(reply);
      seen.push([textOfTape(reply), ...calls.map((call) => JSON.parse(call.arguments).city)]);
      const results = calls.map(({ id }) => result(id, 'sun'));
      turns.push(turn('assistant', partsOfReply(reply)), turn('user', calls.length > 0 ? results : 'More?'));
    }
    expect(seen).toEqual([['', 'Bern'], ['And?', 'Rom'], ['Sun ].'], ['Done.']]);
    await provider.close();
  });
});

describe.each(wires)('a model of scripts at %s', (wire) => {
  it('without a script, or without the tools of one -> says a short text, or the JSON that is asked for', async () => {
    const texts = async (asked: Asked) =>
      (await send(simulator.url, requestOf(wire, { model, ...asked }))).text();
    expect(await texts({})).toContain('Done.');
    expect(await texts({ turns: [scripted([look('Bern')])] })).toContain('Done.');
    expect(await texts({ format: city })).toContain('\\"city\\":\\"text\\"');
  });

  it.each([[[{ shout: 'Hi' }]], [[{ say: 5 }]], [['say']], [[{ raw: null }]], [[{ deltas: {} }]]])(
    'of %j -> refuses it',
    async (steps) => {
      const answer = await request(wire, steps);
      expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining('a list of steps')]);
    },
  );

  it('that fails a number of times -> goes on with the next step of the turn', async () => {
    const steps = [[{ fail: 503, times: 2 }, { say: `Hi ${wire}` }]];
    const answers = [await request(wire, steps), await request(wire, steps), await request(wire, steps)];
    expect(answers.map(({ status }) => status)).toEqual([503, 503, 200]);
    expect(await answers[2]?.text()).toContain(`Hi ${wire}`);
  });

  it('that breaks off -> does so behind what it has said', async () => {
    const answer = await request(wire, [[{ say: 'First.' }, { fail: 'reset' }]], { stream: true });
    let text = '';
    const reading = async () => {
      for await (const chunk of answer.body ?? []) text += Buffer.from(chunk).toString();
    };
    await expect(reading()).rejects.toThrow();
    expect(text).toMatch(/"t\."/);
    expect(text).not.toMatch(/"Do?"/);
  });

  it('that calls a tool by its name -> finds the one whose name a gateway has shortened', async () => {
    const long = 'a.b'.repeat(30);
    const name = `${long.replaceAll('.', '_').slice(0, 51)}_0123456789ab`;
    const answer = await readWhole(wire, [{ call: long }], { tools: [{ name }] });
    expect(JSON.stringify(answer)).toContain(`"name":"${name}"`);
  });
});

describe('a script at anthropic', () => {
  it('has its blocks in the order of its steps', async () => {
    const steps = [[{ say: 'a' }, { think: 'b' }, { say: 'c' }, look('Bern'), { think: 'd' }, look('Rom')]];
    const { content, stop_reason } = await readWhole('anthropic', steps);
    const types = 'text thinking text tool_use thinking tool_use'.split(' ');
    expect([content.map(({ type }: { type: string }) => type), stop_reason]).toEqual([types, 'tool_use']);
  });

  it('refuses in a category, also behind a text', async () => {
    const answer = await readWhole('anthropic', [[{ say: 'Well.' }, { refuse: 'bio' }]]);
    expect(answer).toMatchObject({ content: [{ text: 'Well.' }], stop_reason: 'refusal' });
    expect(answer.stop_details).toMatchObject({ category: 'bio' });
  });

  it('has blocks of its own, also unknown ones, and any end', async () => {
    const unknown = { type: 'new_thing', payload: { a: [1.5] } };
    const cited = { type: 'text', text: '', citations: [] };
    const deltas = [{ type: 'citations_delta', citation: { type: 'char_location' } }];
    const steps = [
      [{ say: 'a' }, { search: 'sun' }, { raw: unknown }, { raw: cited, deltas }, { end: 'pause_turn' }],
    ];
    const { content, stop_reason, usage } = await readWhole('anthropic', steps);
    expect(content).toMatchObject([
      ...[{ text: 'a' }, { type: 'server_tool_use', input: { query: 'sun' } }],
      ...[{ type: 'web_search_tool_result', tool_use_id: content[1].id }, unknown, cited],
    ]);
    expect([stop_reason, usage.server_tool_use.web_search_requests]).toEqual(['pause_turn', 1]);
    const text = await (await request('anthropic', steps, { stream: true })).text();
    const events = [...text.matchAll(/^data: (.+)$/gm)].map(([, data = '']) => JSON.parse(data));
    const ofBlocks = events.filter(({ index }) => index > 0 && index !== undefined);
    expect(ofBlocks.map((each) => each.content_block ?? each.delta ?? each.index)).toMatchObject([
      ...[{ type: 'server_tool_use', input: {} }, { partial_json: '{"query":"sun"}' }, 1],
      ...[{ type: 'web_search_tool_result' }, 2, unknown, 3, cited, deltas[0], 4],
    ]);
  });

  it('goes on behind a search that has paused', async () => {
    const steps = [[{ search: 'sun' }, { end: 'pause_turn' }], { say: 'Sunny.' }];
    const { content } = await readWhole('anthropic', steps);
    const turns = [scripted(steps), turn('assistant', content.map(raw))];
    expect((await readWhole('anthropic', steps, { turns })).content).toMatchObject([{ text: 'Sunny.' }]);
  });

  it.each([
    ['mid_conv_system', "role 'system' is not supported on this model"],
    ['thinking_type:adaptive', 'adaptive thinking is not supported on this model'],
    ['prompt_too_long', 'prompt is too long: 207368 tokens > 200000 maximum'],
    ['context_limit', 'input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000'],
    ['beta_header', 'Unexpected value(s) `a-1` for the `anthropic-beta` header.'],
    ['no_such', 'the name of a failure'],
  ])('fails as %s -> in the words of Claude', async (fail, words) => {
    const asked = requestOf('anthropic', { model, tools, turns: [scripted([{ fail }])] });
    const headers = { ...asked.headers, 'anthropic-beta': 'a-1,b-2' };
    const answer = await send(simulator.url, { ...asked, headers });
    expect([answer.status, JSON.parse(await answer.text()).error.message]).toEqual([
      400,
      expect.stringContaining(words),
    ]);
  });

  it('waits before its turn', async () => {
    const leaving = new AbortController();
    const asked = requestOf('anthropic', {
      model: `${model}@wait`,
      tools,
      turns: [scripted([{ wait: 1e6 }])],
    });
    const answer = send(simulator.url, asked, leaving.signal).catch(() => 'left');
    const call = await simulator.waitForCall((each) => each.model === `${model}@wait`);
    leaving.abort();
    expect(await answer).toBe('left');
    await call.closed;
    expect(call.status).toBeUndefined();
  });

  it.each([
    [{ wait: 1e6 }, 'content_block_stop'],
    [{ fail: 529 }, 'overloaded_error'],
  ])('with %j between two steps -> has ended the block before', async (step, last) => {
    const leaving = new AbortController();
    const turns = [scripted([[{ say: 'First.' }, step, look('Bern')]])];
    const asked = requestOf('anthropic', { model, tools, turns, stream: true });
    const answer = await send(simulator.url, asked, leaving.signal);
    let text = '';
    for await (const chunk of answer.body ?? []) {
      text += Buffer.from(chunk).toString();
      if (text.includes(last)) break;
    }
    leaving.abort();
    expect(text).toContain('content_block_stop');
    expect(text).not.toContain('"city');
  });

  it('gives a sub-agent the script of its own', async () => {
    const prompt = 'sim: [{"say": "From below."}]';
    const { content } = await readWhole('anthropic', [{ call: 'weather', with: { prompt } }]);
    const below = { model, tools, turns: [turn('user', content[0].input.prompt)] };
    expect(await (await send(simulator.url, requestOf('anthropic', below))).text()).toContain('From below.');
  });
});
