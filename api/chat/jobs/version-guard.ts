import { Failure } from '../../../shared/failures.js';
import { isNewer } from '../../../shared/protocol/version.js';

/**
 * Throws `internal` when the record is of a newer release. What it says must not be guessed, but asking again helps: an API
 * process of that release can read it.
 */
export function refuseNewer(record: unknown): void {
  if (isNewer(record)) throw new Failure('internal', { detail: inRollout, retryable: true, retryAfterMs });
}

const inRollout = 'A newer release, which is being rolled out, has written this chat down; ask again.';
const retryAfterMs = 1000;
