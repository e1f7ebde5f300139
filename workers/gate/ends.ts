/** The reason for aborting a job whose caller no longer waits for it, or may no longer have it done. */
export class Cancelled extends Error {
  override readonly name = 'Cancelled';
}

/** Why a job is aborted whose lock could not be renewed: another worker has it now, or will have it. */
export class LockLost extends Error {
  override readonly name = 'LockLost';
}

/** A job that has made no call goes back to its queue with this: another worker may make the call. */
export class NotBegun extends Error {
  override readonly name = 'NotBegun';

  /** `isDelayed` if this worker goes on taking jobs, and would have it back at once. */
  constructor(readonly isDelayed = false) {
    super();
  }
}

/** Why a call was cut that might have been answered: its job goes on to the next provider of its fallback. */
export class CutForFallback extends Error {
  override readonly name = 'CutForFallback';
}
