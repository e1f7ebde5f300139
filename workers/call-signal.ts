import { Failure } from '../shared/failures.js';

/** The signal of one provider call, and how to let go of its timer and listeners once the call is over. */
export interface CallSignal {
  readonly signal: AbortSignal;
  release(): void;
}

interface CallLimits {
  /** Longest call, in milliseconds. */
  timeoutMs: number;
  /** When the caller stops waiting, in milliseconds since the epoch. */
  deadline: number;
  /** Aborts when the process is about to end. */
  shutdown: AbortSignal;
}

/**
 * A signal of its own for every provider call: it aborts with `provider_timeout`, with `timeout` when the caller's
 * deadline comes first, or with the reason of the shutdown. Not `AbortSignal.any`: a call's signal must not stay
 * registered at the process-wide one after the call.
 */
export function openCallSignal({ timeoutMs, deadline, shutdown }: CallLimits): CallSignal {
  const controller = new AbortController();
  const remainingMs = deadline - Date.now();
  const end = () => controller.abort(new Failure(remainingMs <= timeoutMs ? 'timeout' : 'provider_timeout'));
  const timer = setTimeout(end, Math.max(0, Math.min(remainingMs, timeoutMs)));
  const onShutdown = () => controller.abort(shutdown.reason);
  if (shutdown.aborted) onShutdown();
  shutdown.addEventListener('abort', onShutdown, { once: true });
  return {
    signal: controller.signal,
    release: () => {
      clearTimeout(timer);
      shutdown.removeEventListener('abort', onShutdown);
    },
  };
}
