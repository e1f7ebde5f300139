import type { Request } from 'express';
import { z } from 'zod';
import { usageKeys } from '../../db/ledger/usage.js';
import { type ProviderId, providerIds } from '../../shared/contracts/contract.js';
import { goodResults, type RequestCode } from '../../shared/contracts/ledger.js';
import { toCsv } from '../../shared/csv.js';
import { failureCodes } from '../../shared/failures.js';
import { day, text } from '../../shared/validation.js';
import { type PageQuery, pageLimit } from '../http/query.js';

/** The filters of both lists of the ledger. */
interface LedgerQuery {
  /** Only of the user with this name or id. */
  user?: string;
  /** Only of the access token with this name or id. */
  token?: string;
  /** Only of the API of this name: `chat` or `completions`. */
  api?: string;
  /** Only of this session: the `X-Session-Id` of its requests. */
  session?: string;
  /** CSV instead of JSON, for spreadsheets. */
  format?: 'csv';
}

/** Query of `GET /admin/requests`. */
export interface RequestQuery extends PageQuery, LedgerQuery {
  /** Only the request with this id: its `X-Request-Id`, or the id of its chat completion. */
  id?: string;
  /** Only the request with a call that has this id at its provider. */
  providerRequestId?: string;
  /** Only requests that named this provider, or were answered by it. */
  provider?: ProviderId;
  /** Only requests that named this model, or were answered by it. */
  model?: string;
  /** Only requests that ended so; `failed` stands for every failure. */
  result?: RequestCode | 'failed';
  /** Only requests that ended at this time or later (RFC 3339). */
  from?: string;
  /** Only requests that ended before this time. */
  to?: string;
  /** Where to continue: `next` of the previous page. */
  before?: string;
}

/** The days of `GET /usage`. */
export interface DaysQuery {
  /** The first day, in UTC; 29 days before the last unless it is given. */
  from?: string;
  /** The last day; today unless it is given. */
  to?: string;
}

/** Query of `GET /admin/usage`. */
export interface UsageQuery extends DaysQuery, LedgerQuery {
  /** Only calls of this provider. */
  provider?: ProviderId;
  /** Only calls of this model: the one that answered, or else was asked. */
  model?: string;
  /** The keys of the rows: one or two of day, provider, model, user, token, api and session; by day if it is absent. */
  by?: string;
}

const short = text({ max: 200, blank: false });
const provider = z.enum(providerIds);
const results = ['failed', ...goodResults, ...failureCodes] as const;
const time = z.iso.datetime({ offset: true, error: 'must be a time such as 2026-12-01T00:00:00Z' });

const ledgerQuery = {
  user: short,
  token: short,
  provider,
  model: short,
  api: short,
  session: short,
  format: z.literal('csv', { error: 'must be csv' }),
};

export const requestQuery = z
  .object({
    ...ledgerQuery,
    limit: pageLimit,
    id: short,
    providerRequestId: short,
    result: z.enum(results, { error: 'must be failed, ok, truncated, blocked, cancelled, or a code' }),
    from: time,
    to: time,
    before: z.string().regex(/^\d{1,15}\.[\w.:-]{0,64}$/, 'must be `next` of a page'),
  })
  .partial();

export const daysQuery = z.object({ from: day, to: day }).partial();

const key = usageKeys.join('|');

export const usageQuery = z
  .object({
    ...ledgerQuery,
    ...daysQuery.shape,
    by: z.string().regex(new RegExp(`^(${key})(,(${key}))?$`), {
      error: `must be one of ${usageKeys.join(', ')}, or two with a comma between`,
    }),
  })
  .partial();

/** Answers with rows as CSV, and with the address of the page that follows them (RFC 8288). */
export function sendCsv(request: Request, rows: readonly object[], next: string | null = null): void {
  const response = request.res?.type('text/csv').attachment('quillgate.csv');
  const query = new URLSearchParams({ ...(request.query as Record<string, string>), before: next ?? '' });
  if (next !== null) response?.set('Link', `<?${query}>; rel="next"`);
  response?.send(toCsv(rows));
}
