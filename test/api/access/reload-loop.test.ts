import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { ReloadLoop } from '../../../api/access/reload-loop.js';
import { patience } from '../../support/patience.js';

/** A loop over loads that the test brings to an end. */
function start() {
  const loads: PromiseWithResolvers<boolean>[] = [];
  const loop = new ReloadLoop(() => {
    const load = Promise.withResolvers<boolean>();
    loads.push(load);
    return load.promise;
  });
  onTestFinished(() => loop.close());
  return { loop, loads };
}

describe('ReloadLoop', () => {
  it('loads again when it is asked to during a load, one load at a time', async () => {
    const { loop, loads } = start();
    const done = loop.reload();
    void loop.reload();
    void loop.reload();
    expect(loads).toHaveLength(1);
    loads[0]?.resolve(true);
    await vi.waitFor(() => expect(loads).toHaveLength(2), patience);
    loads[1]?.resolve(true);
    await done;
    expect(loads).toHaveLength(2);
  });

  it('asked by a thousand callers -> loads at once, and a second later for all who asked meanwhile', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const { loop, loads } = start();
    const first = loop.reloadShared();
    await vi.advanceTimersByTimeAsync(0);
    const others = Array.from({ length: 1000 }, () => loop.reloadShared());
    loads[0]?.resolve(true);
    await first;
    await vi.advanceTimersByTimeAsync(999);
    expect(loads).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    loads[1]?.resolve(true);
    await Promise.all(others);
    expect(loads).toHaveLength(2);
  });

  it('tells its listeners of each load, also of one that failed', async () => {
    const { loop, loads } = start();
    const listener = vi.fn();
    const stop = loop.onLoad(listener);
    for (const [at, isLoaded] of [true, false, true].entries()) {
      if (at === 2) stop();
      const done = loop.reload();
      loads[at]?.resolve(isLoaded);
      await done;
    }
    expect(listener).toHaveBeenCalledTimes(2);
  });

  it('loads by itself two seconds after a failure, and thirty after a success', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const { loop, loads } = start();
    const done = loop.reload();
    loads[0]?.resolve(false);
    await done;
    await vi.advanceTimersByTimeAsync(1999);
    expect(loads).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(loads).toHaveLength(2);
    loads[1]?.resolve(true);
    await vi.advanceTimersByTimeAsync(29_999);
    expect(loads).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(1);
    expect(loads).toHaveLength(3);
  });

  it('loads no more once it is closed', async () => {
    const { loop, loads } = start();
    const done = loop.reload();
    void loop.reload();
    loop.close();
    loads[0]?.resolve(true);
    await done;
    await loop.reload();
    expect(loads).toHaveLength(1);
  });
});
