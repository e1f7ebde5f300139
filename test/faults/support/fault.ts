import { expect, inject, it } from 'vitest';
import { withTimeout } from '../../../shared/runtime/with-timeout.js';
import type { StoreServer } from '../../support/stores.js';
import { type Balance, type BooksRules, balanced } from './balance.js';
import { type Books, openBooks } from './books.js';

/** A line of the catalogue. */
export interface Fault extends BooksRules {
  /** In the catalogue, such as `W1`. */
  readonly id: string;
  /** The fault that is injected. */
  readonly injected: string;
  /** Where the queue has to live for this; see `storesOf` for what runs where unless this says so. */
  readonly stores?: readonly StoreServer['kind'][];
  /** Whether it is tried on several Redis servers too, where the others are not. */
  readonly onTopologies?: boolean;
  readonly timeoutMs?: number;
  /**
   * Whether its bounds are times that a machine with too much else to do misses, so that a second try is due; the
   * report tells of it. Books that do not balance get none.
   */
  readonly timed?: boolean;
}

/** The report of a case. */
export interface FaultRecord {
  id: string;
  injected: string;
  /** Undefined when the case failed before. */
  cameOut: string | undefined;
  /** Undefined for a case without a deployment. */
  balance: Balance | undefined;
  /** The error of the first try, if this is the second. */
  firstTry?: string;
}

declare module 'vitest' {
  interface TaskMeta {
    fault?: FaultRecord;
  }
}

/** The store has a part in workers, callers, keys, itself, crowds, ends of streams, fallbacks and bounds. */
const ofBothStores = /^(?:[WAIRNFX]\d+|Q[26]|T[567])$/;

/** The stores on which a case runs: both if the store has a part in it, and else Redis alone. */
const storesOf = ({ id, stores }: Fault): readonly StoreServer['kind'][] =>
  stores ?? (ofBothStores.test(id) ? ['redis', 'postgres'] : ['redis']);

const usualTimeoutMs = 60_000;
/** Time to end the programs and to draw the balance. */
const closingMs = 60_000;

/**
 * A test that injects a fault. Its requests go through the books, which must balance at the end, besides what the case
 * itself expects; it gives what came out, in words for the report.
 */
export function fault(line: Fault, run: (books: Books) => Promise<string>): void {
  const { id, injected, onTopologies = false, timed = false, timeoutMs = usualTimeoutMs } = line;
  const { kind, topology } = inject('store');
  const isElsewhere = !storesOf(line).includes(kind) || (topology !== undefined && !onTopologies);
  const tries = timed ? 2 : 1;
  it.skipIf(isElsewhere)(
    `${id}: ${injected}`,
    async ({ task }) => {
      let tried = await tryOnce(line, run);
      const firstTry = tried.missed;
      if (tried.missed && timed) tried = await tryOnce(line, run);
      const { cameOut, balance, missed } = tried;
      const isSecond = timed && firstTry !== undefined;
      task.meta.fault = { id, injected, cameOut, balance, ...(isSecond && { firstTry: firstTry.message }) };
      if (missed) throw missed;
      if (balance) expect(balance, `the books: ${JSON.stringify(balance)}`).toMatchObject(balanced(line));
    },
    tries * (timeoutMs + closingMs),
  );
}

interface Try {
  cameOut: string | undefined;
  balance: Balance | undefined;
  /** Why the case failed before its end. */
  missed: Error | undefined;
}

async function tryOnce(line: Fault, run: (books: Books) => Promise<string>): Promise<Try> {
  const books = openBooks(line.id);
  // In time for the books to be closed: vitest's own limit would leave the programs running.
  const [result] = await Promise.allSettled([withTimeout(line.timeoutMs ?? usualTimeoutMs, run(books))]);
  const hasRun = result.status === 'fulfilled';
  const balance = await books.close({ rules: line, settleMs: hasRun ? 15_000 : 2000 });
  return hasRun
    ? { cameOut: result.value, balance, missed: undefined }
    : { cameOut: undefined, balance, missed: result.reason };
}
