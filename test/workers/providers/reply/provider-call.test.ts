import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { Failure } from '../../../../shared/failures.js';
import type { OnDelta, ProviderRequest } from '../../../../workers/providers/provider.js';
import { callProvider, type ReplyPart } from '../../../../workers/providers/reply/provider-call.js';
import { heldTimeouts } from '../../../support/held-timeouts.js';

const model = 'asked-model';
const idle = new AbortController().signal;

async function* give(parts: ReplyPart[]): AsyncGenerator<ReplyPart> {
  yield* parts;
}

const asked = { turns: [], model, reasoning: 'shown' as const, parameters: { tools: [{ name: 'f' }] } };

type Parts = (request: ProviderRequest) => AsyncIterable<ReplyPart>;
interface CallOptions {
  signal?: AbortSignal;
  onDelta?: OnDelta;
  onBegin?: () => void;
  withTimeout?: NonNullable<ProviderRequest['withTimeout']>;
  blankAllowedFor?: 'stop'[];
  stops?: string[];
}
const call = (parts: Parts, { signal = idle, onDelta, stops, ...hooks }: CallOptions = {}) =>
  callProvider(
    {
      provider: 'anthropic',
      request: { ...asked, signal, ...hooks },
      parts,
      readError: () => ({ status: 500 }),
      stops,
    },
    onDelta,
  );

/** The reply to these parts, and the deltas it came in. */
async function read(...parts: ReplyPart[]) {
  const deltas: string[] = [];
  const onDelta = (text: string) => void deltas.push(text);
  const reply = await call(() => give(parts), { onDelta });
  return { ...reply, deltas };
}

const usage = { inputTokens: 1, outputTokens: 2 };

describe('callProvider', () => {
  it('passes each piece on, and returns the whole', async () => {
    expect(
      await read({ text: 'a' }, { text: ' ' }, { text: 'b', reason: 'stop', model: 'm', usage }),
    ).toEqual({ text: 'a b', deltas: ['a', ' ', 'b'], reason: 'stop', model: 'm', usage });
  });

  it('gathers the counts that only some providers give', async () => {
    const first = { inputTokens: 5, cachedTokens: 3, cacheWriteTokens: undefined };
    const parts = [{ usage: first }, { text: 'a', usage: { outputTokens: 4, reasoningTokens: 2 } }];
    const { usage } = await read(...parts, { reason: 'stop', usage: { cachedTokens: undefined } });
    expect(usage).toStrictEqual({ inputTokens: 5, outputTokens: 4, cachedTokens: 3, reasoningTokens: 2 });
  });

  it('hands out a call behind the text of its part, with its mark', async () => {
    const said = { text: 'a', call: { key: 0, id: 'c', name: 'f', arguments: '{}' } };
    expect(await read(said, { reason: 'stop' })).toEqual({
      text: 'a{}',
      deltas: ['a', '{}'],
      marks: [{ kind: 'call', at: 1, id: 'c', name: 'f' }],
      reason: 'stop',
      model,
    });
  });

  it('a part with several fields -> all of it is handed out, in their order', async () => {
    const called = { key: 0, id: 'c', name: 'f', arguments: '{}' };
    const said = { thinking: 'Hm', opaque: { data: '{"a":1}' }, isNewText: true, text: 'a', call: called };
    const { deltas, marks } = await read({ text: 'b' }, said, { isWhole: true });
    expect(deltas).toEqual(['b', 'Hm', '{"a":1}', 'a', '{}']);
    expect(marks?.map(({ kind, at }) => [kind, at])).toEqual([
      ['thinking', 1],
      ['opaque', 3],
      ['text', 10],
      ['call', 11],
    ]);
  });

  it('hands out nothing that comes after the provider has blocked the reply', async () => {
    const blocked = { reason: 'blocked' as const, text: 'a' };
    const reply = await read(blocked, { call: { key: 0, name: 'f', arguments: '{}' } });
    expect(reply).toEqual({ text: '', deltas: [], reason: 'blocked', model });
  });

  it.each<[string, ReplyPart]>([
    ['thinking', { thinking: '' }],
    ['opaque data', { opaque: { data: '{}' } }],
    ['text', { text: ' ' }],
    ['a call', { call: { key: 0, name: 'f' } }],
  ])('says once that the reply begins, with %s', async (_, first) => {
    const begun: string[] = [];
    const parts: Parts = async function* () {
      yield { model: 'm', text: '' };
      begun.push('first');
      yield first;
      begun.push('second');
      yield { text: 'a', call: { key: 1, name: 'f', preset: '{}' } };
      yield { reason: 'length' };
    };
    await call(parts, { onBegin: () => begun.push('begun') });
    expect(begun).toEqual(['first', 'begun', 'second']);
  });

  it('leaves the usage out when half of it is missing', async () => {
    const reply = await read({ text: 'a', reason: 'stop', usage: { inputTokens: 1 } });
    expect(reply).not.toHaveProperty('usage');
  });

  it('fails on a reply without its end', async () => {
    await expect(read({ text: 'a' })).rejects.toMatchObject({ code: 'provider_error' });
  });

  it.each([
    ['does not listen to it', false],
    ['ends silently', true],
  ])('ends at once with the reason of the signal, although the SDK %s', async (_, endsSilently) => {
    const controller = new AbortController();
    const reason = new Error('deadline');
    const aborted: Parts = async function* () {
      if (endsSilently) yield { text: 'a', reason: 'stop' };
      controller.abort(reason);
      if (!endsSilently) await new Promise(() => {});
    };
    await expect(call(aborted, controller)).rejects.toBe(reason);
  });

  it('passes nothing on after an abort, although the SDK goes on', async () => {
    const controller = new AbortController();
    const reason = new Error('deadline');
    const drained = Promise.withResolvers<void>();
    const deltas: string[] = [];
    const going: Parts = async function* () {
      try {
        for (;;) yield { text: 'a' };
      } finally {
        drained.resolve();
      }
    };
    const onDelta = (text: string) => {
      deltas.push(text);
      controller.abort(reason);
    };
    await expect(call(going, { signal: controller.signal, onDelta })).rejects.toBe(reason);
    await drained.promise;
    expect(deltas).toEqual(['a']);
  });

  it('closes the connection of a call that has ended badly', async () => {
    const ended = Promise.withResolvers<void>();
    const broken = call(async function* ({ signal }) {
      signal.addEventListener('abort', () => ended.resolve());
      yield { text: 'a' };
    });
    await expect(broken).rejects.toMatchObject({ code: 'provider_error' });
    await ended.promise;
  });
});

describe('a reply whose provider has said why it ends', () => {
  const complete: ReplyPart[] = [{ text: 'a' }, { reason: 'stop' }];
  const whole = { text: 'a', reason: 'stop', model };
  /** The reply to a call that its signal ends for this reason, once it is complete. */
  const endedFor = (reason: Error) => {
    const controller = new AbortController();
    const parts: Parts = async function* () {
      yield* complete;
      controller.abort(reason);
      await new Promise<never>(() => {});
    };
    return call(parts, controller);
  };

  /** A call whose answer grows as the test says, with the clock of its wait. */
  function answer() {
    const { withTimeout, elapse } = heldTimeouts();
    const said: (ReplyPart | 'end')[] = [];
    let wake = () => {};
    let isClosed = false;
    const parts: Parts = async function* ({ signal }) {
      signal.addEventListener('abort', () => (isClosed = true));
      for (;;) {
        while (said.length === 0) await new Promise<void>((resolve) => (wake = resolve));
        const next = said.shift() ?? 'end';
        if (next === 'end') return;
        yield next;
      }
    };
    const reply = call(parts, { withTimeout });
    /** Resolves once it has been read. */
    const say = async (...more: typeof said) => {
      said.push(...more);
      wake();
      while (said.length > 0) await turn();
      await turn();
    };
    return { reply, say, elapse, isClosed: () => isClosed };
  }

  it('then says nothing more -> is given after two seconds, and its connection is closed', async () => {
    const { reply, say, elapse, isClosed } = answer();
    let isGiven = false;
    void reply.then(() => {
      isGiven = true;
    });
    await say(...complete);
    await elapse(1999);
    await turn();
    expect(isGiven).toBe(false);
    await elapse(1);
    expect(await reply).toEqual(whole);
    expect(isClosed()).toBe(true);
  });

  it('then counts its tokens, and ends -> has the counts, and waits no longer', async () => {
    const { reply, say } = answer();
    await say(...complete, { usage }, 'end');
    expect(await reply).toEqual({ ...whole, usage });
  });

  it('then gives signs of life alone -> is given after two seconds all the same', async () => {
    const { reply, say, elapse } = answer();
    await say(...complete, {});
    await elapse(1000);
    await say({}, { model: 'm' });
    await elapse(1000);
    expect(await reply).toMatchObject({ text: 'a', model: 'm' });
  });

  it('then says more, slowly -> is given with all of it', async () => {
    const { reply, say, elapse } = answer();
    await say(...complete);
    await elapse(1999);
    await say({ text: 'b' });
    await elapse(1999);
    await say({ text: 'c', reason: 'length' });
    await elapse(2000);
    expect(await reply).toMatchObject({ text: 'abc', reason: 'length' });
  });

  it('then calls a tool that was not offered -> is a failure: a part of it would be missing', async () => {
    const parts: ReplyPart[] = [...complete, { call: { key: 0, name: 'g', arguments: '{}' } }];
    await expect(call(() => give(parts))).rejects.toMatchObject({ code: 'provider_error' });
  });

  it.each(['timeout', 'provider_timeout', 'internal'] as const)(
    'then meets the end of its time with %s -> is given',
    async (code) => {
      expect(await endedFor(new Failure(code))).toEqual(whole);
    },
  );

  it('is wanted no more -> ends with the reason for that', async () => {
    const reason = new Error('cancelled');
    await expect(endedFor(reason)).rejects.toBe(reason);
  });
});

describe('a reply whose provider does not know the texts to stop at', () => {
  const stopAt = async (stops: string[], ...parts: ReplyPart[]) => {
    const deltas: string[] = [];
    const left = [...parts];
    const pull: Parts = async function* () {
      while (left[0]) yield left.shift() as ReplyPart;
    };
    const onDelta = (text: string) => void deltas.push(text);
    const { text, reason, usage } = await call(pull, { stops, onDelta, blankAllowedFor: ['stop'] });
    return { text, reason, usage, deltas, pulled: parts.length - left.length };
  };
  const called = { call: { key: 0, id: 'c', name: 'f', arguments: '{"a":"END"}' } };
  const end: ReplyPart = { reason: 'length', isWhole: true, usage };
  it.each<[given: string, parts: ReplyPart[], gives: object]>([
    [
      'one comes in pieces -> it ends before it, and no more of it is read',
      [{ text: 'one E' }, { text: 'ND two' }, called, end],
      { text: 'one ', reason: 'stop', usage: undefined, deltas: ['one '], pulled: 2 },
    ],
    [
      'one stands behind the end, in a whole answer -> it ends before it, with its token counts',
      [end, { text: 'one END two' }, called],
      { text: 'one ', reason: 'stop', usage, pulled: 2 },
    ],
    [
      'one is all of it -> it is blank, as its caller allows',
      [{ text: 'END' }, end],
      { text: '', reason: 'stop' },
    ],
    [
      'a call has one in its arguments -> they are no text',
      [{ text: 'one' }, called, end],
      { text: 'one{"a":"END"}', reason: 'length', usage },
    ],
    [
      'a call comes between the halves of one -> those are texts',
      [{ text: 'one EN', ...called }, { text: 'D', isNewText: true }, end],
      { text: 'one EN{"a":"END"}D', reason: 'length' },
    ],
    [
      'another text, or a thought, begins between the halves of one -> those are texts',
      [{ text: 'EN' }, { text: 'D E', isNewText: true }, { thinking: '' }, { text: 'ND' }, end],
      { text: 'END END', reason: 'length' },
    ],
    [
      'it ends with the beginning of one -> that is given',
      [{ text: 'one EN' }, end],
      { text: 'one EN', reason: 'length', deltas: ['one ', 'EN'] },
    ],
    ['it is blocked -> nothing is given', [{ text: 'EN' }, { reason: 'blocked' }], { text: '' }],
  ])('%s', async (_, parts, gives) => {
    expect(await stopAt(['END'], ...parts)).toMatchObject(gives);
  });

  it('it breaks off behind the beginning of one -> a failure, and nothing was shown', async () => {
    await expect(stopAt(['END'], { text: 'EN' })).rejects.toMatchObject({ cause: { word: 'unfinished' } });
  });
});
