import type { ProblemCode, ProviderId } from './contract.js';
import type { ProviderError } from './history.js';

/**
 * The ledger as operators see it below `/admin`, and callers at `/usage`. Plain interfaces: the OpenAPI document is
 * generated from them. Times are RFC 3339 in UTC, costs in dollars; a cost is null where it is unknown.
 */

/** The ends of chats that are no failures: a reply, which may be cut or withheld, or a caller who left or cancelled. */
export const goodResults = ['ok', 'truncated', 'blocked', 'cancelled'] as const;

/** The end of a chat. */
export type RequestCode = (typeof goodResults)[number] | ProblemCode;

/** Tokens of one or several calls. */
export interface TokenCounts {
  /** Tokens of the conversations, `cached` and `written` among them. */
  input: number;
  /** Read from the provider's cache. */
  cached: number;
  /** Written to it; `writtenFor1h` are those that it keeps for an hour. */
  written: number;
  writtenFor1h: number;
  /** Tokens of the replies, `thinking` among them. */
  output: number;
  thinking: number;
}

/** A chat that has ended, without its texts. */
export interface LedgerRequest {
  /** Id of the chat, its `X-Request-Id`. */
  id: string;
  /** Name of the user when it came, and id. */
  user: string;
  userId: string;
  /** Id of the access token and its name; null for a name with its secret. */
  token: string | null;
  tokenName: string | null;
  /** `chat` or `completions`. */
  api: string;
  /** Whether it came from the console. */
  console: boolean;
  /** The client's own name for a row of chats (`X-Session-Id`). */
  session: string | null;
  /** The provider and model that the request named. */
  provider: ProviderId;
  model: string | null;
  /** The provider and model that answered, or failed last; null where none was asked. */
  answeredProvider: ProviderId | null;
  answeredModel: string | null;
  streamed: boolean;
  stored: boolean;
  result: RequestCode;
  /** Status, type and place of the provider's error; never its text. */
  error: ProviderError | null;
  /** When it came, and when it ended for its caller. */
  addedAt: string;
  endedAt: string;
  /** How long its jobs waited, and how long they were at the providers; null where no worker began. */
  waitedMs: number | null;
  calledMs: number | null;
  /** How long the last call took to its first token; null unless it was streamed. */
  firstTokenMs: number | null;
  /** From `addedAt` to `endedAt`. */
  totalMs: number;
  /** Its calls, of which so many are estimated, and its runs that were lost and may have made calls. */
  calls: number;
  estimated: number;
  lost: number;
  tokens: TokenCounts;
  /** In dollars; null while a call has no known cost, or no worker has told the end. */
  cost: number | null;
}

/** One page of requests, the last that ended first. */
export interface RequestPage {
  data: LedgerRequest[];
  /** Pass it as `before` to get what ended earlier; null at the end. */
  next: string | null;
  /** When the first request of the ledger ended; null while it has none. */
  since: string | null;
}

/** An attempt at a chat. */
export interface LedgerAttempt {
  provider: ProviderId;
  model: string | null;
  code: string;
  error: ProviderError | null;
}

/** A call of a provider, or a run that was lost and may have made calls. */
export interface LedgerCall {
  /** The attempt at the chat, the run of its job, and the call in it, from 1; 0 for a lost run. */
  attempt: number;
  run: number;
  call: number;
  kind: 'first' | 'retry' | 'repetition' | 'lost';
  provider: ProviderId;
  /** The model that was asked, and the one that answered. */
  model: string | null;
  answeredModel: string | null;
  startedAt: string;
  endedAt: string;
  /** Whether the provider has counted the tokens (`told`), or they are at least so many (`estimated`). */
  known: 'told' | 'estimated' | 'lost';
  /** `ok`, or what it failed with; null for a lost run. */
  code: string | null;
  /** HTTP status and type of the provider's error. */
  status: number | null;
  type: string | null;
  /** HTTP requests that it took. */
  requests: number;
  tokens: TokenCounts;
  /** The tier of service, in the provider's words. */
  tier: string | null;
  /** The provider's id of the request, for its support. */
  requestId: string | null;
  cost: number | null;
  /** The day of its price. */
  priceDated: string | null;
}

/** One request with all that is known of it. */
export interface RequestDetails {
  /** `ended`; else its job waits or runs, and `request` is null. */
  state: 'ended' | 'waiting' | 'running';
  /** The id that was asked for, where it was given the chat of another. */
  askedFor: string | null;
  request: LedgerRequest | null;
  /** In their order; none where it was refused before. */
  attempts: LedgerAttempt[];
  calls: LedgerCall[];
  /** Who asked for one that has not ended, where, and since when. */
  job: { id: string; user: string; provider: ProviderId; model: string | null; addedAt: string } | null;
}

/** A sum of calls. What `by` does not name is absent. */
export interface UsageRow {
  /** A UTC day, `2026-12-01`. */
  day?: string;
  provider?: ProviderId;
  /** The one that answered, or was asked; empty for calls without tokens, and for what was cut before any answer. */
  model?: string;
  /** Name of the user, and id. */
  user?: string;
  userId?: string;
  /** Name of the access token, or its id where it has none; empty for names with their secrets. */
  token?: string;
  tokenId?: string;
  api?: string;
  session?: string;
  calls: number;
  /** How many of the calls failed, have estimated tokens, or have no known price. */
  failed: number;
  estimated: number;
  unpriced: number;
  /** Runs that were lost beside them, and may have made calls. */
  lost: number;
  tokens: TokenCounts;
  /** The sum of the known costs, in dollars; null where there are calls or lost runs, and none has a known cost. */
  cost: number | null;
}

/** The usage from the start of a UTC day to the end of another. */
export interface Usage {
  from: string;
  to: string;
  rows: UsageRow[];
  total: UsageRow;
  /** Models with calls of an unknown price, each with the line for `PRICES_FILE`, without its numbers. */
  unknownModels: { provider: ProviderId; model: string; calls: number; line: string }[];
  /** When the ledger began; null while it is empty. */
  since: string | null;
}

/** The usage of the caller. */
export interface OwnUsage {
  from: string;
  to: string;
  /** Whose it is: the access token's alone, or all of the user's. */
  of: 'token' | 'user';
  /** By day and model. */
  rows: UsageRow[];
  total: UsageRow;
}
