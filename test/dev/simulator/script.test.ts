import { afterAll, describe, expect, it } from 'vitest';
import { startSimulator } from '../../../dev/simulator/server.js';
import type { Turn } from '../../../shared/conversation.js';
import { textOfTape } from '../../../shared/protocol/parts.js';
import { result, said, turn } from '../../support/apis.js';
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

  it.each([[[{ shout: 'Hi' }]], [[{ say: 5 }]], [['say']]])('of %j -> refuses it', async (steps) => {
    const answer = await request(wire, steps);
    expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining('a list of steps')]);
  });

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
