import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startSimulator } from '../../../dev/simulator/server.js';
import { type OpaquePart, type Part, partsOf, type Turn } from '../../../shared/conversation.js';
import { callsIn } from '../../../shared/protocol/alternating-turns.js';
import { toBody } from '../../../workers/providers/anthropic/anthropic-body.js';
import { toInput } from '../../../workers/providers/bedrock/bedrock-body.js';
import { keepThinking } from '../../../workers/providers/claude-thinking.js';
import { type ProviderSetup, providerSetups, replyModes } from '../../support/providers.js';
import { partsOfReply } from '../../support/replies.js';

const { signal } = new AbortController();
const tools = [{ name: 'look' }];
const source = { provider: 'anthropic', model: 'm' } as const;
const turn = (role: Turn['role'], content: Turn['content']): Turn => ({ role, content });
const text = (said: string): Part => ({ type: 'text', text: said });
const call = (id: string): Part => ({ type: 'tool_call', id, name: 'look', arguments: '{}' });
const result = (callId: string): Part => ({ type: 'tool_result', callId, content: 'seen' });
const image: Part = { type: 'image', url: 'https://example.org/a.png' };
const thought = (data: string, own: Partial<OpaquePart> = {}): OpaquePart => ({
  ...{ type: 'opaque', data, ...source },
  ...own,
});

describe('keepThinking', () => {
  const read = ({ data }: OpaquePart) => (data === 'broken' ? [] : [data]);
  /** The data of what is kept, turn by turn. */
  const keptOf = (...turns: Turn[]) =>
    keepThinking({ turns, model: 'm' }, 'anthropic', read).map((each) =>
      partsOf(each).flatMap((part) => (part.type === 'opaque' ? [part.data] : [])),
    );
  const hello = turn('user', 'Hello');
  const calls = (data: string, id: string) => turn('assistant', [thought(data), call(id)]);
  const says = (...data: string[]) => turn('assistant', [...data.map((each) => thought(each)), text('So.')]);
  const results = (id: string, ...notes: Part[]) => turn('user', [result(id), ...notes]);

  it.each<[string, Turn[], string[][]]>([
    [
      'behind the last words of the user -> all of it, also behind turns without any',
      [hello, calls('a', '1'), results('1'), turn('assistant', [call('2')]), results('2'), calls('b', '3')],
      [[], ['a'], [], [], [], ['b']],
    ],
    [
      'behind results with a note -> as behind results',
      [
        ...[hello, calls('a', '1'), results('1'), turn('assistant', [call('2')])],
        ...[results('2', text('4 left'), image), calls('b', '3'), results('3')],
      ],
      [[], ['a'], [], [], [], ['b'], []],
    ],
    [
      'of replies whose last turn has some -> all of it',
      [hello, calls('a', '1'), results('1'), says('b'), hello, says('c', 'd'), turn('user', [image])],
      [[], ['a'], [], ['b'], [], ['c', 'd'], []],
    ],
    [
      'of a reply whose last turn has lost it -> none, nor of those before',
      [hello, says('a'), hello, calls('b', '1'), results('1'), says(), hello, says('c'), hello],
      [[], [], [], [], [], [], [], ['c'], []],
    ],
    [
      'that cannot be read -> none of that reply, nor of those before',
      [hello, says('a'), hello, calls('broken', '1'), results('1'), says('b'), hello, says('c'), hello],
      [[], [], [], [], [], [], [], ['c'], []],
    ],
    [
      'that cannot be read, of the reply at work -> none at all',
      [hello, says('a'), hello, says('broken')],
      [[], [], [], []],
    ],
    ['without any words of the user -> all of it', [calls('a', '1'), results('1')], [['a'], []]],
  ])('given thinking %s', (_, turns, kept) => {
    expect(keptOf(...turns)).toEqual(kept);
  });

  it('given that of another model or provider, or without a model -> none of it, and of its own all', () => {
    const others = [thought('a', { model: 'other' }), thought('b', { provider: 'bedrock' })];
    const nameless: OpaquePart = { type: 'opaque', provider: 'anthropic', data: 'c' };
    const own = [text('So.'), thought('d'), call('1'), thought('e'), call('2')];
    const given = turn('assistant', [...others, nameless, ...own]);
    const [, kept] = keepThinking({ turns: [hello, given], model: 'm' }, 'anthropic', read);
    expect(kept?.content).toEqual(own);
  });
});

describe.each(['anthropic', 'bedrock'] as const)(
  '%s, at a model that binds thinking to what was before it',
  (id) => {
    const setup = providerSetups.find((each) => each.id === id) as ProviderSetup;

    it.each(replyModes)(
      'two loops of calls, $mode -> is sent all thinking, and refuses none of it',
      async ({ stream }) => {
        const simulator = await startSimulator({ port: 0 });
        const provider = await setup.load(simulator.url);
        onTestFinished(async () => {
          provider.close();
          await simulator.close();
        });
        const model = 'sim-drops';
        const ask = async (turns: Turn[]) => {
          const request = { turns, model, signal, reasoning: 'opaque' as const, parameters: { tools } };
          const reply = await provider.run(request, stream ? () => {} : undefined);
          return turn('assistant', partsOfReply(reply));
        };
        let turns = [turn('system', 'Be brief.'), turn('user', 'Hello')];
        for (const next of ['And now?', 'Thanks.']) {
          const calling = await ask(turns);
          const ids = callsIn([calling]).map((made) => made.id);
          turns = [...turns, calling, turn('user', ids.map(result))];
          turns = [...turns, await ask(turns), turn('user', next)];
        }
        await ask(turns);
        const calls = simulator.calls.list();
        const blocks = calls.map((each) =>
          (each.turns ?? []).flatMap(partsOf).filter(({ type }) => type === 'opaque'),
        );
        expect(blocks.map(({ length }) => length)).toEqual([0, 2, 3, 5, 6]);
        expect(calls.map(({ droppedThinking }) => droppedThinking)).toEqual([0, 0, 0, 0, 0]);
      },
    );
  },
);

const nexts = ['note', 'user', 'image', 'system'] as const;

interface Step {
  model: string;
  /** Written by the model, in this order. */
  reply: ('thought' | 'text' | 'call')[];
  /** Added before the next request, behind the results of calls. */
  next: (typeof nexts)[number][];
  /** Breaks one of the blocks that are there, for good. */
  breaks: number | undefined;
}

const requestOf = (turns: Turn[], model: string) => ({ turns, model, signal, parameters: { tools } });

const providers = {
  anthropic: {
    write: (signature: string) => JSON.stringify({ type: 'thinking', thinking: '', signature }),
    ask(turns: Turn[], model: string): unknown[] {
      const { system, tools: offered, messages } = toBody(requestOf(turns, model));
      return [system, offered, ...messages.flatMap(({ role, content }) => blocksIn(role, content))];
    },
  },
  bedrock: {
    write: (signature: string) => JSON.stringify({ reasoningText: { text: '', signature } }),
    ask(turns: Turn[], model: string): unknown[] {
      const { system, toolConfig, messages = [] } = toInput(requestOf(turns, model));
      const blocks = messages.flatMap(({ role = '', content = [] }) => blocksIn(role, content));
      return [system, toolConfig, ...blocks];
    },
  },
};

const blocksIn = (role: string, content: string | readonly unknown[]): unknown[] =>
  (typeof content === 'string' ? [{ type: 'text', text: content }] : content).map((block) => [role, block]);

/** The signature of a block of thinking. */
const signatureOf = (sent: unknown): string | undefined =>
  /"signature":"([^"]+)"/.exec(String(JSON.stringify(sent)))?.[1];

describe.each(['anthropic', 'bedrock'] as const)('random conversations with Claude at %s', (provider) => {
  const { write, ask } = providers[provider];
  const taken = nexts.filter((each) => each !== 'system' || provider === 'anthropic');
  const step: fc.Arbitrary<Step> = fc.record({
    model: fc.constantFrom('m', 'm', 'm', 'other'),
    reply: fc
      .array(fc.constantFrom('thought', 'text', 'call'), { minLength: 1, maxLength: 6 })
      .filter((written) => written.some((each) => each !== 'thought')),
    next: fc.array(fc.constantFrom(...taken), { maxLength: 3 }),
    breaks: fc.option(fc.nat(), { nil: undefined, freq: 8 }),
  });

  const dialogue = fc.array(step, { minLength: 2, maxLength: 12 });

  it('any steps -> each block that is sent stands behind what it was written behind, and none between two is missing', () => {
    let blockCount = 0;
    fc.assert(
      fc.property(dialogue, fc.constantFrom(...clients), (steps, client) => {
        const claude = new Claude();
        let turns: Turn[] = [turn('system', 'Be brief.'), turn('user', 'Hello')];
        for (const [n, { model, reply, next, breaks }] of steps.entries()) {
          claude.read(ask(turns, model));
          const parts = reply.map((kind, place): Part => {
            const id = `${n}-${place}`;
            if (kind === 'thought') return { type: 'opaque', provider, model, data: write(claude.think(id)) };
            const said = kind === 'call' ? call(id) : text(id);
            // Behind the system text, the tools and a turn of the user.
            claude.say(ask([turn('assistant', [said])], model)[3]);
            return said;
          });
          turns = client([...turns, ...turnsAfter(parts, next)]);
          if (breaks !== undefined) turns = withBroken(turns, breaks);
        }
        blockCount += claude.blockCount;
      }),
      { numRuns: 300 },
    );
    expect(blockCount).toBeGreaterThan(100);
  });
});

/** Checks the thinking of each request as Claude does: https://platform.claude.com/docs/en/build-with-claude/preserved-thinking */
class Claude {
  blockCount = 0;
  readonly #written = new Map<string, { before: unknown[]; previous: string | undefined }>();
  #before: unknown[] = [];
  #previous: string | undefined;

  read(sent: readonly unknown[]): void {
    this.#before = [];
    this.#previous = undefined;
    for (const each of sent) {
      const signature = signatureOf(each);
      if (signature === undefined) this.say(each);
      else this.#check(signature);
    }
  }

  #check(signature: string): void {
    const { before, previous } = this.#written.get(signature) ?? expect.unreachable(signature);
    // Much faster than to expect it.
    if (!isDeepStrictEqual(this.#before, before)) expect(this.#before).toEqual(before);
    if (this.#previous !== undefined) expect(previous).toBe(this.#previous);
    this.#previous = signature;
    this.blockCount += 1;
  }

  say(block: unknown): void {
    this.#before.push(block);
  }

  think(signature: string): string {
    this.#written.set(signature, { before: [...this.#before], previous: this.#previous });
    this.#previous = signature;
    return signature;
  }
}

/** A reply, and what follows. */
function turnsAfter(parts: Part[], next: Step['next']): Turn[] {
  const results = parts.flatMap((part) => (part.type === 'tool_call' ? [result(part.id)] : []));
  const notes = next.includes('note') ? [text('4 left')] : [];
  const others: Record<Step['next'][number], Turn[]> = {
    note: [],
    user: [turn('user', 'And?')],
    image: [turn('user', [image])],
    system: [turn('system', 'Be kind.')],
  };
  return [
    turn('assistant', parts),
    ...(results.length > 0 ? [turn('user', [...results, ...notes])] : []),
    ...next.flatMap((each) => others[each]),
  ];
}

/**
 * Programs that keep all thinking, that beside calls alone, and that of the last turn of a reply for one turn more. The
 * last do not lose it between two turns of the assistant's: those two are then one, as they never were.
 */
const clients: ((turns: Turn[]) => Turn[])[] = [
  (turns) => turns,
  (turns) =>
    turns.map((each) => {
      const lastCall = partsOf(each).findLastIndex(({ type }) => type === 'tool_call');
      return withThinkingUpTo(lastCall, each);
    }),
  (turns) => {
    const asking = turns.flatMap((each, place) => (isAsking(each) ? [place] : []));
    const lasts = asking
      .slice(1, -1)
      .map((end) => turns.findLastIndex(({ role }, n) => n < end && role === 'assistant'));
    return turns.map((each, place) =>
      lasts.includes(place) && turns[place - 1]?.role !== 'assistant' ? withThinkingUpTo(0, each) : each,
    );
  },
];

const isAsking = ({ role, content }: Turn): boolean =>
  role === 'user' && partsOf({ content }).every(({ type }) => type !== 'tool_result');

function withThinkingUpTo(end: number, { role, content }: Turn): Turn {
  const kept = partsOf({ content }).filter(({ type }, place) => type !== 'opaque' || place < end);
  return turn(role, kept);
}

/** The conversation with one block that its client has damaged. */
function withBroken(turns: Turn[], which: number): Turn[] {
  const blocks = turns.flatMap(partsOf).filter((part) => part.type === 'opaque');
  const broken = blocks[which % Math.max(1, blocks.length)];
  const damaged = (part: Part): Part => (part === broken ? { ...broken, data: 'broken' } : part);
  return turns.map(({ role, content }) =>
    turn(role, typeof content === 'string' ? content : content.map(damaged)),
  );
}
