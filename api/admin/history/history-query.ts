import { z } from 'zod';
import { type ProviderId, providerIds } from '../../../shared/contracts/contract.js';
import type { RequestCode } from '../../../shared/contracts/history.js';
import { failureCodes } from '../../../shared/failures.js';
import { text } from '../../../shared/validation.js';

/** Query of `GET /admin/requests`. */
export interface RequestQuery {
  /** Only the chat with this id: the `X-Request-Id` of its request. */
  id?: string;
  /** Only chats whose request names this provider. */
  provider?: ProviderId;
  /** Only chats that ended so. */
  code?: RequestCode;
  /** Only chats of the user of this name. */
  user?: string;
  /**
   * Maximum number of chats in the answer; 1,000 are kept.
   * @isInt
   * @minimum 1
   * @maximum 1000
   * @default 100
   */
  limit?: number;
}

/** Query of `GET /admin/samples`. */
export interface SampleQuery {
  /** Only samples of this provider. */
  provider?: ProviderId;
}

/** Query of `GET /admin/events`. */
export interface EventsQuery {
  /** Additional events, as a comma list of `requests` and `samples`. */
  include?: string;
}

const codes = ['ok', 'truncated', 'blocked', 'cancelled', ...failureCodes] as const;
const provider = z.enum(providerIds);

export const requestQuery = z
  .object({
    id: text({ max: 64, blank: false }),
    provider,
    code: z.enum(codes, { error: 'must be ok, truncated, blocked, cancelled, or the code of a failure' }),
    user: text({ max: 200, blank: false }),
    limit: z.string().regex(/^([1-9]\d{0,2}|1000)$/, { error: 'must be a whole number from 1 to 1000' }),
  })
  .partial();

export const sampleQuery = z.object({ provider }).partial();

export const eventsQuery = z
  .object({
    include: z.string().regex(/^(requests|samples)(,(requests|samples))?$/, {
      error: 'must be requests, samples, or both with a comma between',
    }),
  })
  .partial();

/** The events that a reader wants besides the state of the fleet. */
export function wantedHistory({ include = '' }: EventsQuery): { requests: boolean; samples: boolean } {
  const names = new Set(include.split(','));
  return { requests: names.has('requests'), samples: names.has('samples') };
}
