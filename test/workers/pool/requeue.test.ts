import { expect, it } from 'vitest';
import { HandedBack } from '../../../shared/queue/queue-store.js';
import { handBack, pauseFor } from '../../../workers/pool/intake.js';
import { createRecordingLog } from '../../support/recording-log.js';

it.each([
  [0, 200],
  [1001, 501],
  [60_000, 5000],
])('a job that is %d ms old and cannot be done here -> stays away for %d ms', (ageMs, pauseMs) => {
  expect(pauseFor({ timestamp: 5 }, 5 + ageMs)).toBe(pauseMs);
});

it.each([
  ['without a pause', undefined],
  ['with a pause of 200 ms', 200],
])('a job that goes back %s -> can be taken after it', async (_, pauseMs) => {
  const since = Date.now();
  let delayedTo: number | undefined;
  const job = {
    id: 'one',
    moveToWait: async () => {},
    moveToDelayed: async (timestamp: number) => {
      delayedTo = timestamp;
    },
  };
  const { log } = createRecordingLog();
  await expect(handBack(job, 'token', { pauseMs, log })).rejects.toBeInstanceOf(HandedBack);
  if (pauseMs === undefined) expect(delayedTo).toBeUndefined();
  else expect(delayedTo).toBeGreaterThanOrEqual(since + pauseMs);
});
