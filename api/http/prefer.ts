import type { Response as HttpResponse } from 'express';
import { Failure } from '../../shared/failures.js';

/**
 * The value of a preference in a `Prefer` header (RFC 7240, 2), without its quotes and parameters; empty when it has
 * none, undefined when it is not there. `name` in lower case. Where it is repeated, the first one counts.
 */
export function preferenceOf(header: string | undefined, name: string): string | undefined {
  for (const preference of header?.match(listItems) ?? []) {
    const [pair = ''] = preference.match(parts) ?? [];
    const [token = '', ...value] = pair.split('=');
    if (token.trim().toLowerCase() === name) return unquoted(value.join('=').trim());
  }
  return undefined;
}

// A quoted string may hold what otherwise separates; one that is not closed takes all the rest.
const listItems = /(?:[^,"]|"(?:[^"\\]|\\.)*"?)+/g;
const parts = /(?:[^;"]|"(?:[^"\\]|\\.)*"?)+/g;

const unquoted = (value: string): string =>
  /^"(?:[^"\\]|\\.)*"$/.test(value) ? value.slice(1, -1).replaceAll(/\\(.)/g, '$1') : value;

/**
 * How many seconds a caller is willing to wait, from `Prefer: wait=N` (RFC 7240, 4.3); undefined when it does not say.
 * Throws `invalid_request` unless they are whole and between 1 and `maxS`.
 */
export function readWait(header: string | undefined, maxS: number): number | undefined {
  const value = preferenceOf(header, 'wait');
  if (value === undefined) return undefined;
  const seconds = /^\d{1,9}$/.test(value) ? Number(value) : 0;
  if (seconds >= 1 && seconds <= maxS) return seconds;
  const detail = `wait must be a whole number of seconds from 1 to ${maxS}`;
  throw new Failure('invalid_request', { errors: [{ pointer: 'Prefer', detail }] });
}

/** Whether a caller wants no connection held until the reply is there: `Prefer: respond-async` (RFC 7240, 4.1). */
export const prefersAsync = (header: string | undefined): boolean =>
  preferenceOf(header, 'respond-async') === '';

/** Whether a caller wants a request with fields that nobody reads to be refused: `Prefer: handling=strict` (RFC 7240, 4.4). */
export const prefersStrict = (header: string | undefined): boolean =>
  preferenceOf(header, 'handling')?.toLowerCase() === 'strict';

interface Applied {
  isStrict?: boolean;
  isAsync?: boolean;
  waitS?: number | undefined;
}

/** Tells in `Preference-Applied` (RFC 7240, 3) all that was applied; to be called again when more is. */
export function markApplied(response: HttpResponse, { isStrict, isAsync, waitS }: Applied): void {
  const applied = [
    ...(isStrict ? ['handling=strict'] : []),
    ...(isAsync ? ['respond-async'] : []),
    ...(waitS === undefined ? [] : [`wait=${waitS}`]),
  ];
  if (applied.length > 0) response.set('Preference-Applied', applied.join(', '));
}
