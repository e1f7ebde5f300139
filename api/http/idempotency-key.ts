import { invalidRequest } from '../../shared/validation.js';

/** Throws `invalid_request` unless it is 1 to 255 visible ASCII characters; Node joins repeated ones with a blank. */
export function readIdempotencyKey(header: string | undefined): string | undefined {
  if (header === undefined || /^[\x21-\x7e]{1,255}$/.test(header)) return header;
  throw invalidRequest([{ pointer: 'Idempotency-Key', detail: 'must be 1 to 255 visible ASCII characters' }]);
}
