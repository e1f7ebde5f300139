import { describe, expect, it } from 'vitest';
import { CompilingCalls } from '../../../workers/gate/compiling-calls.js';
import { Slots } from '../../../workers/gate/slots.js';

function start({ concurrency = 8, hasRoom = true } = {}) {
  const options = { concurrency, hasRoom };
  const compiling = new CompilingCalls({
    concurrency: () => options.concurrency,
    hasRoom: () => options.hasRoom,
  });
  const slots = new Slots({ size: () => Infinity, onChange: () => {} });
  const ask = async (user?: string) => {
    const slot = slots.open({ priority: 0, addedAt: 0 });
    await slot.take();
    const place = compiling.outlast({ user, slot });
    expect(slot.isParked).toBe(place !== undefined);
    return place;
  };
  /** How many of 20 calls of each of these users may go on. */
  const count = async (...users: (string | undefined)[]) => {
    const places = await Promise.all(users.flatMap((user) => Array.from({ length: 20 }, () => ask(user))));
    return places.filter((place) => place !== undefined).length;
  };
  return { options, compiling, ask, count };
}

describe('CompilingCalls', () => {
  it('a thousand schemas that were used -> they are known, and another one replaces the one used longest ago', () => {
    const { compiling } = start();
    for (let n = 0; n < 1000; n += 1) compiling.recordUse(`${n}`);
    compiling.recordUse('0');
    compiling.recordUse('another');
    const known = ['0', '1', '2', 'another'].map((schema) => !compiling.isNew(schema));
    expect(known).toEqual([true, false, true, true]);
    expect(compiling.isNew(undefined)).toBe(false);
  });

  it.each([
    [1, 1, 1],
    [2, 1, 2],
    [7, 1, 6],
    [8, 2, 8],
    [20, 5, 20],
  ])('%i slots -> as many calls may go on without one, %i of one user, %i of six', async (size, own, all) => {
    expect(await start({ concurrency: size }).count('M')).toBe(own);
    expect(await start({ concurrency: size }).count(undefined)).toBe(own);
    expect(await start({ concurrency: size }).count(...'MNOPQR')).toBe(all);
  });

  it('a call that ends -> its place is for the next, as many as the pool has slots by then', async () => {
    const { options, ask, count } = start({ concurrency: 8 });
    const first = await ask('M');
    expect(await count('M')).toBe(1);
    first?.[Symbol.dispose]();
    expect(await count('M')).toBe(1);
    options.concurrency = 2;
    expect(await count('V')).toBe(0);
    options.concurrency = 3;
    expect(await count('V')).toBe(1);
  });

  it('no room for one more job without a slot -> the call keeps its slot, and gets no place', async () => {
    const { options, count } = start({ hasRoom: false });
    expect(await count('M')).toBe(0);
    options.hasRoom = true;
    expect(await count('M')).toBe(2);
  });
});
