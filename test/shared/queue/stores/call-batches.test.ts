import { setImmediate as nextTurn } from 'node:timers/promises';
import pg from 'pg';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  type CallArguments,
  CallBatches,
  type CallResult,
} from '../../../../shared/queue/stores/call-batches.js';
import { QueryQueue } from '../../../../shared/queue/stores/postgres-jobs.js';

const resultOf = ([argument]: CallArguments): CallResult => ({ rows: [{ id: argument }] });
const silentMs = 2000;
const refusal = new pg.DatabaseError('refused', 0, 'error');

/** Batches of a function whose statements are answered when told; a call of 'bad' is refused. */
function open() {
  const statements: { calls: unknown[]; answer(error?: Error): Promise<void> }[] = [];
  const statement = <T>(calls: readonly CallArguments[], result: () => T): Promise<T> => {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const answer = async (error?: Error) => {
      const refused = error ?? (calls.some(([argument]) => argument === 'bad') ? refusal : undefined);
      if (refused) reject(refused);
      else resolve(result());
      // One for who waits for the answer, one for what follows.
      await nextTurn();
      await nextTurn();
    };
    statements.push({ calls: calls.map(([argument]) => argument), answer });
    return promise;
  };
  const batches = new CallBatches({
    queries: new QueryQueue({ concurrency: 2, silentMs }),
    callOne: (call) => statement([call], () => resultOf(call)),
    callAll: (calls) => statement(calls, () => calls.map(resultOf)),
  });
  return { batches, statements, asked: () => statements.map(({ calls }) => calls) };
}

const ids = (results: readonly CallResult[]) => results.map(({ rows }) => rows[0]?.id);

describe('CallBatches', () => {
  it('makes the calls of one turn in one statement, and gives each its own result', async () => {
    const { batches, statements, asked } = open();
    const results = Promise.all(['a', 'b', 'c'].map((argument) => batches.call([argument])));
    await nextTurn();
    expect(asked()).toEqual([['a', 'b', 'c']]);
    await statements[0]?.answer();
    expect(ids(await results)).toEqual(['a', 'b', 'c']);
  });

  it('has two statements under way, and makes what comes meanwhile together', async () => {
    const { batches, statements, asked } = open();
    const results: Promise<CallResult>[] = [];
    for (const argument of ['a', 'b', 'c', 'd', 'e']) {
      results.push(batches.call([argument]));
      await nextTurn();
    }
    expect(asked()).toEqual([['a'], ['b']]);
    await statements[1]?.answer();
    expect(asked()).toEqual([['a'], ['b'], ['c', 'd', 'e']]);
    await statements[0]?.answer();
    await statements[2]?.answer();
    expect(ids(await Promise.all(results))).toEqual(['a', 'b', 'c', 'd', 'e']);
  });

  it('bounds a statement', async () => {
    const { batches, statements, asked } = open();
    const results = Promise.all(Array.from({ length: 120 }, (_, n) => batches.call([n])));
    await nextTurn();
    await nextTurn();
    expect(asked().map(({ length }) => length)).toEqual([50, 50]);
    // None may be left to time out while other tests run.
    for (let n = 0; n < 3; n += 1) await statements[n]?.answer();
    expect(await results).toHaveLength(120);
    expect(asked().map(({ length }) => length)).toEqual([50, 50, 20]);
  });

  it('makes each call by itself when the server refuses one, so that only that one fails', async () => {
    const { batches, statements, asked } = open();
    const results = Promise.allSettled(['a', 'bad', 'b'].map((argument) => batches.call([argument])));
    await nextTurn();
    for (let n = 0; n < 4; n += 1) await statements[n]?.answer();
    expect(asked()).toEqual([['a', 'bad', 'b'], ['a'], ['bad'], ['b']]);
    expect((await results).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  });

  it('repeats nothing when the connection is lost, and goes on afterwards', async () => {
    const { batches, statements, asked } = open();
    const results = Promise.allSettled(['a', 'b'].map((argument) => batches.call([argument])));
    await nextTurn();
    await statements[0]?.answer(new Error('lost'));
    expect((await results).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    const later = batches.call(['c']);
    await nextTurn();
    await statements[1]?.answer();
    expect(ids([await later])).toEqual(['c']);
    expect(asked()).toEqual([['a', 'b'], ['c']]);
  });

  it('fails what waits when nothing is answered, and does not make it', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const { batches, asked } = open();
    const under = ['a', 'b'];
    for (const argument of under) {
      void batches.call([argument]);
      await vi.advanceTimersByTimeAsync(1);
    }
    const waiting = expect(batches.call(['c'])).rejects.toThrow('the store answers nothing');
    await vi.advanceTimersByTimeAsync(silentMs + 10);
    await waiting;
    expect(asked()).toEqual([['a'], ['b']]);
  });
});
