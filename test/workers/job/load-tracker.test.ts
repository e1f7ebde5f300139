import { describe, expect, it } from 'vitest';
import { createLoadTracker } from '../../../workers/job/load-tracker.js';

describe('createLoadTracker', () => {
  it('counts the jobs in flight, however they end', async () => {
    const load = createLoadTracker();
    const [one, two] = [Promise.withResolvers<string>(), Promise.withResolvers<string>()];
    const jobs = [load.track(() => one.promise), load.track(() => two.promise)];
    expect(load.inFlight).toBe(2);
    one.resolve('done');
    expect(await jobs[0]).toBe('done');
    expect(load.inFlight).toBe(1);
    two.reject(new Error('x'));
    await expect(jobs[1]).rejects.toThrow('x');
    expect(load.inFlight).toBe(0);
  });

  it('knows how long the oldest running job has been running', async () => {
    let nowMs = 0;
    const load = createLoadTracker({ now: () => nowMs });
    expect(load.oldestJobMs).toBeUndefined();
    const [one, two] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const first = load.track(() => one.promise);
    nowMs = 300;
    const second = load.track(() => two.promise);
    nowMs = 1000;
    expect(load.oldestJobMs).toBe(1000);
    one.resolve();
    await first;
    expect(load.oldestJobMs).toBe(700);
    two.resolve();
    await second;
    expect(load.oldestJobMs).toBeUndefined();
  });

  it('counts a job that throws at once', async () => {
    const load = createLoadTracker();
    const thrower = () => {
      throw new Error('x');
    };
    await expect(load.track(thrower)).rejects.toThrow('x');
    expect(load.inFlight).toBe(0);
  });

  it('knows no mean before the first call, takes the first for it, and then follows slowly', () => {
    const load = createLoadTracker();
    expect(load.meanJobMs).toBe(0);
    load.recordCall(40);
    expect(load.meanJobMs).toBe(40);
    load.recordCall(20);
    expect(load.meanJobMs).toBe(39);
    for (let n = 0; n < 100; n += 1) load.recordCall(1);
    expect(load.meanJobMs).toBeLessThan(4);
  });

  it('learns from a call that was cut only that calls may take longer', () => {
    const load = createLoadTracker();
    load.recordCall(40);
    load.recordCall(20, { timedOut: true });
    expect(load.meanJobMs).toBe(40);
    load.recordCall(60, { timedOut: true });
    expect(load.meanJobMs).toBe(41);
  });
});
