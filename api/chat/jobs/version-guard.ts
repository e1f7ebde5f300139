import { Failure } from '../../../shared/failures.js';
import { isNewer } from '../../../shared/protocol/version.js';

/**
 * Throws a retryable `internal` when a newer release has written the record: its meaning must not be guessed, but an
 * API process of that release can read it.
 */
export function refuseNewer(record: unknown): void {
  if (isNewer(record)) throw new Failure('internal', { detail: inRollout, retryable: true, retryAfterMs });
}

const inRollout = 'A newer release, which is being rolled out, has written this chat down; ask again.';
const retryAfterMs = 1000;
