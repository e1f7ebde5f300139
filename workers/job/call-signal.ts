import { Failure } from '../../shared/failures.js';

/** The signal of one provider call; `release` ends its timer and listeners once the call is over. */
export interface CallSignal {
  readonly signal: AbortSignal;
  release(): void;
}

interface CallLimits {
  /** Longest call, in milliseconds. */
  timeoutMs: number;
  /** When the caller stops waiting, in milliseconds since the epoch. */
  deadline: number;
  /** The clock of the deadline. */
  now?: (() => number) | undefined;
  /** The job's own signal. */
  stop: AbortSignal;
}

/**
 * A signal of its own for every provider call: it aborts with `provider_timeout`, with `timeout` when the caller's
 * deadline comes first, or with the reason of `stop`. Not `AbortSignal.any`: a call's signal must not stay registered
 * at the job's after the call.
 */
export function openCallSignal({ timeoutMs, deadline, now = Date.now, stop }: CallLimits): CallSignal {
  const controller = new AbortController();
  const remainingMs = deadline - now();
  const end = () => controller.abort(new Failure(remainingMs <= timeoutMs ? 'timeout' : 'provider_timeout'));
  const timer = setTimeout(end, Math.max(0, Math.min(remainingMs, timeoutMs)));
  const onStop = () => controller.abort(stop.reason);
  if (stop.aborted) onStop();
  stop.addEventListener('abort', onStop, { once: true });
  return {
    signal: controller.signal,
    release: () => {
      clearTimeout(timer);
      stop.removeEventListener('abort', onStop);
    },
  };
}
