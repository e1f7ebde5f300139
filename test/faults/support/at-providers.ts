import { expect } from 'vitest';
import { type ProviderId, providerIds } from '../../../shared/contract.js';
import type { ChatReply } from '../../support/deployment.js';
import { codeOf } from './balance.js';
import type { Books } from './books.js';

/** The provider of the nth request, where each goes to another one than the request before. */
export const providerOf = (n: number): ProviderId => providerIds[n % providerIds.length] ?? 'openai';

/** A variable of every pool, such as its `CONCURRENCY`. */
export const ofEveryPool = (name: string, value: number): Record<string, string> =>
  Object.fromEntries(providerIds.map((id) => [`${id.toUpperCase()}_${name}`, String(value)]));

/** The calls of one provider's model. */
export interface Met {
  readonly provider: ProviderId;
  readonly model: string;
  readonly reply: ChatReply;
}

/** Asks every provider for each of the models, all at once. */
export const askAll = (books: Books, models: readonly string[]): Promise<Met[]> =>
  Promise.all(
    providerIds.flatMap((provider) =>
      models.map(async (model) => ({ provider, model, reply: await books.chat({ provider, model }) })),
    ),
  );

/** Gives every pool good answers, so that the faults that follow are less than half of what its breaker judges. */
export async function beginWell(books: Books, times: number): Promise<void> {
  const met = await askAll(books, Array<string>(times).fill('sim-echo'));
  expect(met.filter(({ reply }) => reply.status !== 200)).toEqual([]);
}

/** Each model's code, which has to be the same at every provider. */
export function codesByModel(met: readonly Met[]): Record<string, string[]> {
  const models = [...new Set(met.map(({ model }) => model))];
  const codesOf = (wanted: string) => [
    ...new Set(met.filter(({ model }) => model === wanted).map(({ reply }) => codeOf(reply))),
  ];
  return Object.fromEntries(models.map((model) => [model, codesOf(model)]));
}

/** Every pool still takes requests, and its breaker never opened. */
export async function expectBreakersClosed(books: Books): Promise<void> {
  await beginWell(books, 1);
  expect(books.deployment.logs()).not.toContain('breaker changed');
}
