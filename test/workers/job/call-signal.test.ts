import { getEventListeners, once } from 'node:events';
import { afterEach, describe, expect, it } from 'vitest';
import { CallSignal } from '../../../workers/job/call-signal.js';

const neverStopped = new AbortController().signal;
const soon = { timeoutMs: 10, deadline: Date.now() + 60_000 };
let opened: CallSignal[] = [];

afterEach(() => {
  for (const call of opened) call.release();
  opened = [];
});

function open(limits: { timeoutMs: number; inMs: number; stop?: AbortSignal }): AbortSignal {
  const deadline = Date.now() + limits.inMs;
  const call = new CallSignal({
    timeoutMs: limits.timeoutMs,
    deadline,
    stop: limits.stop ?? neverStopped,
  });
  opened.push(call);
  return call.signal;
}

describe('CallSignal', () => {
  it("ends a call that takes too long with the provider's timeout", async () => {
    const signal = open({ timeoutMs: 10, inMs: 60_000 });
    expect(signal.aborted).toBe(false);
    await once(signal, 'abort');
    expect(signal.reason).toMatchObject({ code: 'provider_timeout' });
  });

  it("ends it with the caller's timeout when the deadline comes first", async () => {
    const signal = open({ timeoutMs: 60_000, inMs: 10 });
    await once(signal, 'abort');
    expect(signal.reason).toMatchObject({ code: 'timeout' });
  });

  it('ends it although the deadline has passed', async () => {
    const signal = open({ timeoutMs: 60_000, inMs: -60_000 });
    await once(signal, 'abort');
    expect(signal.reason).toMatchObject({ code: 'timeout' });
  });

  it('ends it with the reason of the stop, also of one that has come before', () => {
    const stopping = new AbortController();
    const reason = new Error('stopping');
    const signal = open({ timeoutMs: 60_000, inMs: 60_000, stop: stopping.signal });
    stopping.abort(reason);
    expect(signal.reason).toBe(reason);
    expect(open({ timeoutMs: 60_000, inMs: 60_000, stop: stopping.signal }).reason).toBe(reason);
  });

  it('leaves nothing at the stop signal once it is released', () => {
    const stopping = new AbortController();
    const calls = Array.from({ length: 50 }, () => new CallSignal({ ...soon, stop: stopping.signal }));
    expect(getEventListeners(stopping.signal, 'abort')).toHaveLength(50);
    for (const call of calls) call.release();
    expect(getEventListeners(stopping.signal, 'abort')).toEqual([]);
    stopping.abort();
    expect(calls.filter(({ signal }) => signal.aborted)).toEqual([]);
  });

  it('never aborts once it is released', async () => {
    const released = new CallSignal({ ...soon, stop: neverStopped });
    released.release();
    await once(open({ timeoutMs: 50, inMs: 60_000 }), 'abort');
    expect(released.signal.aborted).toBe(false);
  });

  it('causes no warning, however many calls there are at once', async () => {
    const warnings: Error[] = [];
    const record = (warning: Error) => void warnings.push(warning);
    process.on('warning', record);
    const stopping = new AbortController();
    for (let n = 0; n < 100; n += 1) open({ timeoutMs: 60_000, inMs: 60_000, stop: stopping.signal });
    await new Promise((resolve) => setImmediate(resolve));
    process.off('warning', record);
    expect(warnings).toEqual([]);
  });
});
