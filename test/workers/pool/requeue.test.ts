import { expect, it } from 'vitest';
import { HandedBack } from '../../../shared/queue/queue-store.js';
import { Requeue } from '../../../workers/pool/requeue.js';
import { createRecordingLog } from '../../support/recording-log.js';

it.each([
  [0, 200],
  [1001, 501],
  [60_000, 5000],
])('a job that is %d ms old goes back for later -> after a pause of %d ms', async (ageMs, pauseMs) => {
  const since = Date.now();
  let movedTo = 0;
  const job = {
    ...{ id: 'one', timestamp: 0, attemptsStarted: 1, data: {} },
    moveToWait: async () => expect.unreachable(),
    moveToDelayed: async (timestamp: number) => {
      movedTo = timestamp;
    },
  };
  const requeue = new Requeue(createRecordingLog().log, () => ageMs);
  await expect(requeue.requeue(job, 'token', true)).rejects.toBeInstanceOf(HandedBack);
  expect(movedTo).toBeGreaterThanOrEqual(since + pauseMs);
  expect(movedTo).toBeLessThanOrEqual(Date.now() + pauseMs);
});
