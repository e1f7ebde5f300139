import { describe, expect, it } from 'vitest';
import { Failure } from '../../../shared/failures.js';
import { callProvider, type ReplyPart } from '../../../workers/providers/provider-call.js';
import { readEvents } from '../../support/replies.js';

const model = 'asked-model';
const idle = new AbortController().signal;
const finish = (facts: object) => ({ type: 'finish', model, ...facts });
const delta = (text: string) => ({ type: 'delta', text });

async function* give(parts: ReplyPart[]): AsyncGenerator<ReplyPart> {
  yield* parts;
}

const call = (parts: (signal: AbortSignal) => AsyncIterable<ReplyPart>, signal = idle) =>
  callProvider({ model, signal, parts, readError: () => ({ status: 500 }) });
const read = (...parts: ReplyPart[]) => readEvents(call(() => give(parts)));

describe('callProvider', () => {
  it('gives texts as deltas and the finish last', async () => {
    const usage = { inputTokens: 1, outputTokens: 2 };
    expect(
      await read({ text: 'a' }, { text: ' ' }, { text: 'b', reason: 'stop', model: 'm', usage }),
    ).toEqual([delta('a'), delta(' '), delta('b'), finish({ reason: 'stop', model: 'm', usage })]);
  });

  it('gathers what is told about a reply from all its parts', async () => {
    const parts = [{ usage: { inputTokens: 1, outputTokens: 1 } }, { text: 'a', reason: 'stop' as const }];
    expect(await read(...parts, { usage: { outputTokens: 9 } })).toEqual([
      delta('a'),
      finish({ reason: 'stop', usage: { inputTokens: 1, outputTokens: 9 } }),
    ]);
  });

  it('leaves the usage out when half of it is missing', async () => {
    expect(await read({ text: 'a', reason: 'stop', usage: { inputTokens: 1 } })).toEqual([
      delta('a'),
      finish({ reason: 'stop' }),
    ]);
  });

  it('holds a leading blank back until a text follows', async () => {
    expect(await read({ text: '\n' }, { text: ' ' }, { text: 'a\n' }, { reason: 'stop' })).toEqual([
      delta('\n a\n'),
      finish({ reason: 'stop' }),
    ]);
  });

  it.each(['stop', 'length'] as const)('fails on a blank reply that ends with %s', async (reason) => {
    await expect(read({ text: ' \u200B' }, { reason })).rejects.toMatchObject({ code: 'provider_error' });
  });

  it('fails on a reply without its end', async () => {
    await expect(read({ text: 'a' })).rejects.toMatchObject({ code: 'provider_error' });
  });

  it('drops the text of a reply that is blocked as a whole', async () => {
    expect(await read({ text: 'a', reason: 'blocked' })).toEqual([finish({ reason: 'blocked' })]);
  });

  it('turns whatever is thrown into a failure', async () => {
    const broken = call(async function* () {
      yield { text: 'a' };
      throw new TypeError('x');
    });
    await expect(readEvents(broken)).rejects.toBeInstanceOf(Failure);
  });

  it('ends at once with the reason of the signal, although the SDK does not listen to it', async () => {
    const controller = new AbortController();
    const reason = new Error('deadline');
    const deaf = call(async function* () {
      controller.abort(reason);
      await new Promise(() => {});
      yield {};
    }, controller.signal);
    await expect(readEvents(deaf)).rejects.toBe(reason);
  });

  it('ends with the reason of the signal, although the SDK ends silently', async () => {
    const controller = new AbortController();
    const reason = new Error('deadline');
    const silent = call(async function* () {
      yield { text: 'a', reason: 'stop' };
      controller.abort(reason);
    }, controller.signal);
    await expect(readEvents(silent)).rejects.toBe(reason);
  });

  it('ends the call when aborted while the listener is busy with a delta', async () => {
    const controller = new AbortController();
    const ended = Promise.withResolvers<void>();
    const events = call(async function* (signal) {
      signal.addEventListener('abort', () => ended.resolve());
      yield { text: 'a' };
    }, controller.signal);
    await events.next();
    controller.abort();
    await ended.promise;
    await events.return(undefined);
  });

  it('ends the call when nobody listens any more', async () => {
    const ended = Promise.withResolvers<void>();
    const events = call(async function* (signal) {
      signal.addEventListener('abort', () => ended.resolve());
      for (;;) yield { text: 'a' };
    });
    for await (const _ of events) break;
    await ended.promise;
  });
});
