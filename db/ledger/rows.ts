import type { ProviderId } from '../../shared/contracts/contract.js';
import type { CallTokens, Origin } from '../../shared/protocol/entries.js';

/** What the ledger's entries become. Times are in milliseconds since the epoch. */

/** What one entry knows of a chat; what is absent stays as it is known. */
export interface RequestRow {
  readonly chat: string;
  readonly origin: Origin;
  readonly addedAt: number;
  /** The end that a worker knows. That of the greatest attempt and run counts. */
  readonly end?: RequestEnd;
  /** What its caller was told, and when, where no worker's end says it. */
  readonly left?: { readonly code: string; readonly at: number };
  /** The chat whose reply the request was given. */
  readonly joins?: string;
}

export interface RequestEnd {
  readonly attempt: number;
  readonly run: number;
  readonly code: string;
  readonly at: number;
  readonly provider: ProviderId;
  readonly model?: string | undefined;
  readonly error?:
    | { status?: number | undefined; type?: string | undefined; place?: string | undefined }
    | undefined;
  readonly attempts?: readonly object[] | undefined;
  readonly waitedMs?: number | undefined;
  readonly calledMs?: number | undefined;
  readonly firstTokenMs?: number | undefined;
}

/** The place of a call in the ledger, unique. */
export interface CallKey {
  readonly chat: string;
  readonly attempt: number;
  /** When its job was added. */
  readonly addedAt: number;
  readonly run: number;
  /** How often its job had been taken; 0 of a lost run. */
  readonly start: number;
  /** From 1; 0 of a lost run. */
  readonly call: number;
}

/** A call, or a lost run, which may have made calls. */
export interface CallRow extends CallKey {
  readonly kind: 'first' | 'retry' | 'repetition' | 'lost';
  readonly origin: Pick<Origin, 'user' | 'name' | 'token' | 'api' | 'session'>;
  readonly provider: ProviderId;
  /** Null of a lost run. */
  readonly model: string | null;
  readonly answered: string | null;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly known: 'told' | 'estimated' | 'lost';
  readonly code: string | null;
  readonly status: number | null;
  readonly type: string | null;
  readonly requests: number;
  readonly tokens: CallTokens;
  readonly tier: string | null;
  readonly requestId: string | null;
  /** In nano-dollars; null where it is unknown, and of a lost run. */
  readonly cost: bigint | null;
  /** The day of its price; null where it is unknown or the call had no tokens. */
  readonly priceDated: string | null;
}

/** The rows of some entries, each key once. */
export interface LedgerBatch {
  readonly requests: readonly RequestRow[];
  readonly calls: readonly CallRow[];
  /** The runs that have ended with an entry of their own: no lost run stands for them. */
  readonly ended: readonly Pick<CallKey, 'chat' | 'attempt' | 'addedAt' | 'run'>[];
}
