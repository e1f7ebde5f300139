import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { quillgate } from '../support/command-line.js';
import { withLag } from '../support/lateness.js';
import { eventually } from './support/expectations.js';
import { fault } from './support/fault.js';

/** Longer than the lease after which a process has lost the messages that were sent meanwhile. */
const frozenMs = 18_000;
const queued = 40;

fault(
  {
    id: 'F5',
    timed: true,
    injected: `a worker SIGSTOPped for ${frozenMs} ms, meanwhile pools pause; SIGCONT`,
    timeoutMs: 120_000,
  },
  async (books) => {
    const { workers, stores, simulator } = await books.start({
      workers: 2,
      variables: { OPENAI_CONCURRENCY: '2', CHAT_MAX_WAIT_S: '120' },
    });
    const frozen = workers[0]?.pid ?? 0;
    process.kill(frozen, 'SIGSTOP');
    expect(await quillgate(['pools', 'pause', 'openai'], stores)).toMatchObject({ code: 0 });
    const frozenUntil = delay(frozenMs);
    const asked = Array.from({ length: queued }, () =>
      books.ask({ model: 'sim-latency-300', headers: { Prefer: 'respond-async' } }),
    );
    for (const { status } of await Promise.all(asked.map(({ reply }) => reply))) expect(status).toBe(202);
    await frozenUntil;
    const thawedAt = Date.now();
    const { lagMs } = await withLag(async () => {
      process.kill(frozen, 'SIGCONT');
      await delay(4000);
    });
    const late = simulator.calls.list().filter(({ facts }) => facts.receivedAt > thawedAt + 1000 + lagMs);
    expect(late).toEqual([]);
    const begun = simulator.calls.lastId;
    expect(begun).toBeLessThan(queued);
    expect(await quillgate(['pools', 'resume', 'openai'], stores)).toMatchObject({ code: 0 });
    await eventually(async () => expect(await books.jobs.unfinished()).toBe(0));
    return `${begun} calls began within the second after it, none later; the rest after pools resume`;
  },
);
