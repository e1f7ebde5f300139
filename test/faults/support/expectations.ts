import { setTimeout as delay } from 'node:timers/promises';
import { expect, vi } from 'vitest';
import type { ChatCall, ChatReply } from '../../support/deployment.js';
import { patience } from '../../support/patience.js';
import { codeOf } from './balance.js';
import type { Books } from './books.js';

/** Less than the limit of a case (`catalogue.ts`), so that one that fails says what did not come. */
const eventuallyMs = 100_000;

/** Waits until the check passes. */
export const eventually = (check: () => Promise<void> | void): Promise<void> =>
  vi.waitFor(check, { ...patience, timeout: eventuallyMs });

/** The lines that the programs have logged in this case with these words. */
export const linesWith = (books: Books, words: string): string[] =>
  books
    .logs()
    .split('\n')
    .filter((line) => line.includes(words));

/** Asks again and again until an answer is good. */
export async function untilOk(books: Books, call: ChatCall = {}): Promise<void> {
  while ((await books.chat(call)).status !== 200) await delay(20);
}

/** Asks until ten answers in a row are good: every pool is known again, and every connection is there. */
export async function untilWell(books: Books, call: ChatCall = {}): Promise<void> {
  for (let good = 0; good < 10; good += 1) {
    if ((await books.chat(call)).status === 200) continue;
    good = -1;
    await delay(20);
  }
}

/** Only these codes may occur. */
export function expectCodes(replies: readonly ChatReply[], allowed: readonly string[]): void {
  expect(replies.map(codeOf).filter((code) => !allowed.includes(code))).toEqual([]);
}

/** Starts something at this interval until it is stopped; gives all that was started. */
export function keepDoing<T>(everyMs: number, start: () => T): { stop(): T[] } {
  const started: T[] = [];
  const timer = setInterval(() => started.push(start()), everyMs);
  return {
    stop: () => {
      clearInterval(timer);
      return started;
    },
  };
}

/** The time a step takes, in milliseconds. */
export async function timed(step: Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await step;
  return Math.round(performance.now() - startedAt);
}
