import { describe, expect, it } from 'vitest';
import { createLoad } from '../../../workers/job/load-tracker.js';

describe('createLoad', () => {
  it('counts the jobs in flight, however they end', async () => {
    const load = createLoad();
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
    const load = createLoad({ now: () => nowMs });
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
    const load = createLoad();
    const thrower = () => {
      throw new Error('x');
    };
    await expect(load.track(thrower)).rejects.toThrow('x');
    expect(load.inFlight).toBe(0);
  });

  it('knows no mean before the first call, takes the first for it, and then follows slowly', () => {
    const load = createLoad();
    expect(load.meanJobMs).toBe(0);
    load.noteCall(40);
    expect(load.meanJobMs).toBe(40);
    load.noteCall(20);
    expect(load.meanJobMs).toBe(39);
    for (let n = 0; n < 100; n += 1) load.noteCall(1);
    expect(load.meanJobMs).toBeLessThan(4);
  });

  it('learns from a call that was cut only that calls may take longer', () => {
    const load = createLoad();
    load.noteCall(40);
    load.noteCall(20, { wasCut: true });
    expect(load.meanJobMs).toBe(40);
    load.noteCall(60, { wasCut: true });
    expect(load.meanJobMs).toBe(41);
  });
});
