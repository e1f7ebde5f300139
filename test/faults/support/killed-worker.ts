import { expect } from 'vitest';
import { authorization } from '../../support/deployment.js';
import { codeOf } from './balance.js';
import type { Books } from './books.js';

/** W1, in a deployment of two workers with the profile `short`; the request may have two calls. */
export async function killWorkerInCall(books: Books): Promise<void> {
  const asked = books.ask({ model: 'sim-gate-0' });
  const first = await asked.arrived();
  await killWorkerOf(books);
  await asked.arrived(first);
  asked.open();
  expect(codeOf(await asked.reply)).toBe('ok');
}

/** Kills the worker that runs OpenAI's job. */
export const killWorkerOf = async (books: Books) => books.kill(await books.jobs.workerOf('openai'));

/** Reads the stored chat of an answer. */
export async function readChat({ deployment }: Books, { headers }: { headers: Headers }): Promise<unknown> {
  const id = headers.get('content-location')?.split('/').at(-1);
  const response = await fetch(`${deployment.url}/chat/${id}`, { headers: { Authorization: authorization } });
  return response.json();
}
