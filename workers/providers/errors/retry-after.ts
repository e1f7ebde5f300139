import { isObject, type JsonObject } from '../../../shared/json/json.js';
import { detailsIn } from '../reply/answer-fields.js';

/** The parts of a provider's answer that may say how long to wait. */
export interface WaitFacts {
  /** Looks up a header of the answer by its lower-case name. */
  header?: ((name: string) => string | null | undefined) | undefined;
  /** The `details` of the error in the body, as Google has them. */
  details?: unknown;
}

/**
 * How long the provider asks to wait, in milliseconds: `Retry-After` of RFC 9110, `retry-after-ms` of OpenAI and
 * Anthropic, or Google's `RetryInfo`, which has no header. Undefined where it does not say.
 */
export function readRetryAfter({ header, details }: WaitFacts, nowMs: number): number | undefined {
  const milliseconds = toNumber(header?.('retry-after-ms'));
  if (milliseconds !== undefined) return milliseconds;
  const value = header?.('retry-after');
  const seconds = toNumber(value) ?? toNumber(retryDelayIn(details));
  if (seconds !== undefined) return Math.ceil(seconds * 1000);
  const dateMs = value && httpDate.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(dateMs) ? undefined : Math.max(0, dateMs - nowMs);
}

// `Date.parse` alone takes nearly anything for a date, even "-1".
const httpDate = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/** A plain number of at most nine digits before the point: any longer wait is nonsense. */
function toNumber(value: string | null | undefined): number | undefined {
  return value && /^\d{1,9}(\.\d+)?$/.test(value) ? Number(value) : undefined;
}

/**
 * Whether the quota that is spent has the name of one of a whole day at Google. An answer that says how long to wait is
 * an ordinary limit for all that: https://github.com/google-gemini/gemini-cli/pull/18073,
 * https://github.com/diegosouzapw/OmniRoute/issues/9504
 */
export const isOfDay = ({ details }: WaitFacts): boolean =>
  [detailOf('QuotaFailure', details)?.violations]
    .flat()
    .some((each) => isObject(each) && typeof each.quotaId === 'string' && each.quotaId.includes('PerDay'));

/** Seconds, sent as `34.5s`. */
function retryDelayIn(details: unknown): string | undefined {
  const delay = detailOf('RetryInfo', details)?.retryDelay;
  return typeof delay === 'string' ? delay.replace(/s$/, '') : undefined;
}

/** Only texts are compared: to make one of a deeply nested list would exhaust the stack. */
const detailOf = (name: string, details: unknown): JsonObject | undefined =>
  detailsIn(details).find(
    ({ '@type': type }) => typeof type === 'string' && type.endsWith(`google.rpc.${name}`),
  );
