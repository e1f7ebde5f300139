import { describe, expect, it } from 'vitest';
import { type Run, SupervisedPart } from '../../dev/supervised-part.js';

const reason = 'worker ended unexpectedly (SIGKILL); its log is worker.log';
const again = `${reason}. Starting it again.`;
const givenUp = `${reason}. It was started again three times in the minute before.`;

interface HeldRun extends Run {
  isReady(): void;
  dies(): void;
}

function heldRun(): HeldRun {
  const ready = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<string>();
  const end = () => {
    ready.reject(new Error('on purpose'));
    ended.resolve(reason);
  };
  ready.promise.catch(() => undefined);
  return {
    ready: ready.promise,
    ended: ended.promise,
    isReady: () => ready.resolve(),
    dies: end,
    stop: async () => end(),
  };
}

/** A part whose runs end on command, with what it has said so far. */
function partWith({ start = heldRun }: { start?: () => Run } = {}) {
  const stopping = new AbortController();
  const clock = { now: 1_000_000 };
  const said: string[] = [];
  const runs: Run[] = [];
  const part = new SupervisedPart({
    name: 'worker',
    start: () => {
      const run = runs.length === 0 ? heldRun() : start();
      runs.push(run);
      return run;
    },
    stopping: stopping.signal,
    say: (line) => void said.push(line),
    now: () => clock.now,
  });
  const current = () => part.run as HeldRun;
  /** The latest run ends; resolves when the part has done what follows. */
  const dies = async (afterMs = 0) => {
    clock.now += afterMs;
    current().dies();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { part, said, runs, stopping, current, dies, end: part.keepRunning() };
}

describe('a part of npm start', () => {
  it('that dies -> is started again, and that is said when it begins and when the part can serve', async () => {
    const { said, runs, current, dies } = partWith();
    await dies();
    expect({ said, starts: runs.length }).toEqual({ said: [again], starts: 2 });
    current().isReady();
    await current().ready;
    expect(said).toEqual([again, 'worker runs again.']);
  });

  it('that dies a fourth time within a minute -> is given up with the reason, its end and its log', async () => {
    const { runs, dies, end } = partWith();
    await dies();
    await dies(30_000);
    await dies(29_998);
    await dies(1);
    expect(await end).toBe(givenUp);
    expect(runs).toHaveLength(4);
  });

  it('that dies a fourth time after a minute -> is started again, with as many starts as are a minute old', async () => {
    const { runs, dies, end } = partWith();
    await dies();
    await dies(30_000);
    await dies(20_000);
    await dies(10_000);
    expect(runs).toHaveLength(5);
    await dies(19_999);
    expect(await end).toBe(givenUp);
  });

  it('that dies before it can serve -> counts as any other death, and is not said to run', async () => {
    const { said, dies, end } = partWith();
    for (let deaths = 0; deaths < 4; deaths += 1) await dies();
    expect(await end).toBe(givenUp);
    expect(said).toEqual([again, again, again]);
  });

  it('that ends while everything stops -> is left alone', async () => {
    const { said, runs, stopping, dies, end } = partWith();
    stopping.abort();
    await dies();
    expect(await end).toBe(reason);
    expect({ said, starts: runs.length }).toEqual({ said: [], starts: 1 });
  });

  it('that is stopped while it starts again -> stops the new run, and is not said to run', async () => {
    const { part, said, runs, stopping, current, dies, end } = partWith();
    await dies();
    stopping.abort();
    current().isReady();
    await part.stop();
    expect(await end).toBe(reason);
    expect({ said, starts: runs.length }).toEqual({ said: [again], starts: 2 });
  });

  it('that cannot be started at all -> is given up with the cause', async () => {
    const start = () => {
      throw new Error('ENOENT: worker.log');
    };
    const { dies, end } = partWith({ start });
    await dies();
    expect(await end).toBe(`${reason}. It cannot be started again: ENOENT: worker.log.`);
  });
});
