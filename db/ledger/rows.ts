import type { Origin } from '../../shared/protocol/entries.js';
import type { calls, requests } from '../schema.js';

/** A call, or a lost run, which may have made calls: its call is 0. */
export type CallRow = typeof calls.$inferInsert;

/** The facts of a chat that entries have: those without an end leave out its columns. */
export type RequestRow = typeof requests.$inferInsert;

/** The run of a job. */
export type RunKey = Pick<CallRow, 'chat' | 'attempt' | 'addedAt' | 'run'>;

/** The rows of some entries, each key once. */
export interface LedgerBatch {
  readonly requests: readonly RequestRow[];
  readonly calls: readonly CallRow[];
  /** The runs that have ended with an entry of their own: no lost run stands for them. */
  readonly ended: readonly RunKey[];
}

/** Who asked, as both tables have it. */
export const callerOf = ({ user, name, token, api, session }: Origin) => ({
  userId: user,
  userName: name,
  tokenId: token,
  api,
  session,
});

/** A call as its price depends on it. */
export const pricedOf = ({ provider, answeredModel, model, tier, endedAt, requests, ...call }: CallRow) => {
  const { input, cached, written, writtenFor1h, output, thinking } = call;
  const tokens = { input, cached, written, writtenFor1h, output, thinking };
  const answered = answeredModel ?? model ?? '';
  return { provider, model: answered, tier: tier ?? undefined, at: endedAt, requests, tokens };
};
