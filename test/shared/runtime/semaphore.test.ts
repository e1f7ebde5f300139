import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Semaphore } from '../../../shared/runtime/semaphore.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const options = { waitMs: 100, timeoutError: () => new Error('none free') };

/** Takes a free permit and returns what gives it back. */
function hold(semaphore: Semaphore): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  void semaphore.run(() => promise, options);
  return resolve;
}

describe('Semaphore', () => {
  it('gives its permits out, and then those that come back to whoever has waited longest', async () => {
    const semaphore = new Semaphore(1);
    const order: string[] = [];
    const release = hold(semaphore);
    const second = semaphore.run(async () => order.push('second'), options);
    const third = semaphore.run(async () => order.push('third'), options);
    expect(order).toEqual([]);
    release();
    await Promise.all([second, third]);
    expect(order).toEqual(['second', 'third']);
  });

  it('throws the timeout error when none is free in time, and loses no permit by that', async () => {
    const semaphore = new Semaphore(1);
    const release = hold(semaphore);
    const failed = expect(semaphore.run(async () => 'done', options)).rejects.toThrow('none free');
    await vi.advanceTimersByTimeAsync(101);
    await failed;
    release();
    expect(await semaphore.run(async () => 'done', options)).toBe('done');
  });

  it('holds a permit for as long as the work runs, also when that fails', async () => {
    const semaphore = new Semaphore(1);
    const { promise, reject } = Promise.withResolvers<void>();
    const second = vi.fn(async () => 'done');
    const failing = semaphore.run(() => promise, options);
    const waiting = semaphore.run(second, options);
    expect(second).not.toHaveBeenCalled();
    reject(new Error('failed'));
    await expect(failing).rejects.toThrow('failed');
    expect(await waiting).toBe('done');
  });

  it('waits longer while it is asked to', async () => {
    const semaphore = new Semaphore(1);
    hold(semaphore);
    let leftMs = 50;
    const settled = vi.fn();
    const failed = semaphore.run(async () => 'done', { ...options, extendMs: () => leftMs }).catch(settled);
    await vi.advanceTimersByTimeAsync(140);
    expect(settled).not.toHaveBeenCalled();
    leftMs = 0;
    await vi.advanceTimersByTimeAsync(20);
    await failed;
    expect(settled).toHaveBeenCalledWith(new Error('none free'));
  });
});
