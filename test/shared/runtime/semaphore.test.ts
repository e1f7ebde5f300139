import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Semaphore } from '../../../shared/runtime/semaphore.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const options = { waitMs: 100, timeoutError: () => new Error('none free') };

describe('Semaphore', () => {
  it('gives its permits out, and then those that come back to whoever has waited longest', async () => {
    const semaphore = new Semaphore(1);
    const order: string[] = [];
    const release = await semaphore.acquire(options);
    const second = semaphore.acquire(options).then((done) => {
      order.push('second');
      done();
    });
    const third = semaphore.acquire(options).then(() => order.push('third'));
    expect(order).toEqual([]);
    release();
    await Promise.all([second, third]);
    expect(order).toEqual(['second', 'third']);
  });

  it('throws the timeout error when none is free in time, and loses no permit by that', async () => {
    const semaphore = new Semaphore(1);
    const release = await semaphore.acquire(options);
    const failed = expect(semaphore.acquire(options)).rejects.toThrow('none free');
    await vi.advanceTimersByTimeAsync(101);
    await failed;
    release();
    expect(await semaphore.acquire(options)).toBeTypeOf('function');
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
    await semaphore.acquire(options);
    let leftMs = 50;
    const settled = vi.fn();
    const failed = semaphore.acquire({ ...options, extendMs: () => leftMs }).catch(settled);
    await vi.advanceTimersByTimeAsync(140);
    expect(settled).not.toHaveBeenCalled();
    leftMs = 0;
    await vi.advanceTimersByTimeAsync(20);
    await failed;
    expect(settled).toHaveBeenCalledWith(new Error('none free'));
  });
});
