import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type RetryOptions, retry } from '../../../shared/runtime/retry.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());
afterEach(() => void vi.restoreAllMocks());

/** Retries work that throws these values in turn and then succeeds; gives the times of the tries. */
function start(thrown: readonly unknown[], options: RetryOptions) {
  const startedAt = performance.now();
  const triedAt: number[] = [];
  const work = async () => {
    triedAt.push(performance.now() - startedAt);
    if (triedAt.length <= thrown.length) throw thrown[triedAt.length - 1];
    return 'done';
  };
  const settled = retry(work, options).then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  return { settled, triedAt };
}

const failures = (count: number) =>
  Array.from({ length: count }, (_, index) => new Error(`failure ${index + 1}`));

describe('retry', () => {
  it.each<[string, RetryOptions, number[]]>([
    ['equal ones', { pauseMs: 100 }, [0, 100, 200, 300, 400]],
    ['doubled ones, up to the longest', { pauseMs: 100, maxPauseMs: 300 }, [0, 100, 300, 600, 900]],
    ['random ones, up to twice as long', { pauseMs: 100, randomize: true }, [0, 150, 300, 450, 600]],
  ])('gives the result once the work succeeds, after pauses: %s', async (_, options, times) => {
    vi.spyOn(Math, 'random').mockReturnValue(0.5);
    const { settled, triedAt } = start(failures(4), options);
    await vi.runAllTimersAsync();
    expect(await settled).toEqual({ value: 'done' });
    expect(triedAt).toEqual(times);
  });

  const notSecond = (error: unknown) => (error as Error).message !== 'failure 2';
  it.each<[string, RetryOptions, string, number[]]>([
    ['all tries have failed', { pauseMs: 100, maxTries: 3 }, 'failure 3', [0, 100, 200]],
    ['the time is over, after one last try', { pauseMs: 100, maxMs: 250 }, 'failure 4', [0, 100, 200, 250]],
    ['another try does not mend it', { pauseMs: 100, shouldRetry: notSecond }, 'failure 2', [0, 100]],
    ['the signal has aborted already', { pauseMs: 100, signal: AbortSignal.abort() }, 'failure 1', [0]],
  ])('throws the last error when %s', async (_, options, message, times) => {
    const { settled, triedAt } = start(failures(9), options);
    await vi.runAllTimersAsync();
    expect(await settled).toEqual({ error: new Error(message) });
    expect(triedAt).toEqual(times);
  });

  it('throws the last error, not the reason of the signal, when that aborts in a pause', async () => {
    const controller = new AbortController();
    const { settled, triedAt } = start(failures(9), { pauseMs: 100, signal: controller.signal });
    await vi.advanceTimersByTimeAsync(150);
    controller.abort();
    expect(await settled).toEqual({ error: new Error('failure 2') });
    expect(triedAt).toEqual([0, 100]);
  });

  it('gives the result of a try during which the signal aborts', async () => {
    const controller = new AbortController();
    const work = async () => {
      controller.abort();
      return 'done';
    };
    expect(await retry(work, { pauseMs: 100, signal: controller.signal })).toBe('done');
  });

  it.each([new TypeError('x is not a function'), 'a text', undefined, null, { code: 1 }])(
    'tries again after %o and throws it unchanged at last',
    async (thrown) => {
      const { settled, triedAt } = start(Array(2).fill(thrown), { pauseMs: 100, maxTries: 2 });
      await vi.runAllTimersAsync();
      expect(await settled).toStrictEqual({ error: thrown });
      expect(triedAt).toHaveLength(2);
    },
  );

  it('tries again after what the work throws before it gives a promise', async () => {
    let tries = 0;
    const work = (): Promise<string> => {
      tries += 1;
      if (tries === 1) throw new Error('at once');
      return Promise.resolve('done');
    };
    const result = retry(work, { pauseMs: 100 });
    await vi.runAllTimersAsync();
    expect(await result).toBe('done');
  });

  it('reports each failure that is followed by another try', async () => {
    const onFailure = vi.fn();
    const { settled } = start(['first', 'second', 'third'], { pauseMs: 100, maxTries: 3, onFailure });
    await vi.runAllTimersAsync();
    expect(await settled).toEqual({ error: 'third' });
    expect(onFailure.mock.calls).toEqual([['first'], ['second']]);
  });

  it.each([true, false])('lets the process end in a pause only where asked to (%s)', async (unref) => {
    const setTimer = vi.spyOn(globalThis, 'setTimeout');
    const { settled } = start(failures(1), { pauseMs: 100, unref });
    await vi.advanceTimersByTimeAsync(50);
    const timers: NodeJS.Timeout[] = setTimer.mock.results.map(({ value }) => value);
    // While the clock is a false one: restoring it later would take time away from other tests.
    setTimer.mockRestore();
    expect(timers.map((timer) => timer.hasRef())).toEqual([!unref]);
    await vi.runAllTimersAsync();
    expect(await settled).toEqual({ value: 'done' });
  });
});
