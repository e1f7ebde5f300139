import { expect } from 'vitest';
import { codeOf } from './balance.js';
import type { Books } from './books.js';

/** W1, in a deployment of two workers with the profile `short`; the request may have two calls. */
export async function killWorkerInCall(books: Books): Promise<void> {
  const asked = books.ask({ model: 'sim-gate-0' });
  const first = await asked.arrived();
  await books.kill(await books.jobs.workerOf('openai'));
  await asked.arrived(first);
  asked.open();
  expect(codeOf(await asked.reply)).toBe('ok');
}
