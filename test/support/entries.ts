import { encodeOrigin, type NewEntry, type Origin } from '../../shared/protocol/entries.js';

/** Who asks in tests. */
export const originOfTest = (own: Partial<Origin> = {}): Origin => ({
  ...{ user: 'me', api: 'chat', provider: 'openai', deadline: Date.now() + 60_000 },
  ...own,
});

/** The name of a test's jobs. */
export const nameOfTest = (own: Partial<Origin> = {}): string => encodeOrigin(originOfTest(own));

/** A ledger that keeps what is appended. */
export function openTestLedger() {
  const entries: NewEntry[] = [];
  const append = async (...appended: readonly NewEntry[]) => void entries.push(...appended);
  return { entries, append, flush: async () => undefined };
}

/** A ledger of a test that is not about it. */
export const noLedger = { append: async () => undefined, flush: async () => undefined };
