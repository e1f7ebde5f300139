import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { TurnQueue } from '../../../api/http/server.js';

/** Queues so many pieces of work and gives what has been done, which grows. */
function queueMany(turns: TurnQueue, count: number): number[] {
  const done: number[] = [];
  for (let n = 0; n < count; n += 1) turns.run(() => void done.push(n));
  return done;
}

it('does what there is room for at once, and the rest in the turns that follow, in order', async () => {
  const done = queueMany(new TurnQueue(2), 5);
  expect(done).toEqual([0, 1]);
  await nextTurn();
  expect(done).toEqual([0, 1, 2, 3]);
  await nextTurn();
  expect(done).toEqual([0, 1, 2, 3, 4]);
});

it('starts no later task before one that waits', async () => {
  const turns = new TurnQueue(1);
  const order: string[] = [];
  for (const name of ['first', 'second', 'third']) turns.run(() => void order.push(name));
  await nextTurn();
  turns.run(() => void order.push('late'));
  expect(order).toEqual(['first', 'second']);
  await nextTurn();
  await nextTurn();
  expect(order).toEqual(['first', 'second', 'third', 'late']);
});

it('counts what work queues itself', async () => {
  const turns = new TurnQueue(1);
  const order: string[] = [];
  turns.run(() => {
    order.push('outer');
    turns.run(() => void order.push('inner'));
  });
  expect(order).toEqual(['outer']);
  await nextTurn();
  expect(order).toEqual(['outer', 'inner']);
});
