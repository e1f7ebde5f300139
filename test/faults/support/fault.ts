import { expect, inject, it } from 'vitest';
import { within } from '../../../shared/within.js';
import type { StoreServer } from '../../support/stores.js';
import { type Balance, type BooksRules, balanced } from './balance.js';
import { type Books, openBooks } from './books.js';

/** A line of the catalogue. */
export interface Fault extends BooksRules {
  /** In the catalogue, such as `W1`. */
  readonly id: string;
  /** What is done to the deployment. */
  readonly injected: string;
  /** Where the queue has to live for this, or one of them where it has no part in it; either store unless told. */
  readonly stores?: readonly StoreServer['kind'][];
  readonly timeoutMs?: number;
}

/** What is told of a case when it has run. */
export interface FaultRecord {
  id: string;
  injected: string;
  /** Undefined when the case failed before. */
  cameOut: string | undefined;
  /** Undefined for a case without a deployment. */
  balance: Balance | undefined;
}

declare module 'vitest' {
  interface TaskMeta {
    fault?: FaultRecord;
  }
}

/** Time to end the programs and to draw the balance. */
const closingMs = 60_000;

/**
 * A test that injects a fault. Its requests go through the books, which must balance at the end, whatever the case itself
 * expects; it gives what came out, in words for the report.
 */
export function fault(line: Fault, run: (books: Books) => Promise<string>): void {
  const { id, injected, stores, timeoutMs = 60_000, ...rules } = line;
  const isElsewhere = stores !== undefined && !stores.includes(inject('store').kind);
  it.skipIf(isElsewhere)(
    `${id}: ${injected}`,
    async ({ task }) => {
      const books = openBooks(id);
      // In time for the books to be closed: vitest's own limit would leave the programs running.
      const [result] = await Promise.allSettled([within(timeoutMs, run(books))]);
      const hasRun = result.status === 'fulfilled';
      const balance = await books.close({ rules, settleMs: hasRun ? 15_000 : 2000 });
      task.meta.fault = { id, injected, cameOut: hasRun ? result.value : undefined, balance };
      if (!hasRun) throw result.reason;
      if (balance) expect(balance).toMatchObject(balanced(rules));
    },
    timeoutMs + closingMs,
  );
}
