import type { PoolSettings } from '../../shared/config/pool-settings.js';
import type { ProviderId } from '../../shared/contract.js';
import { Failure } from '../../shared/failures.js';
import type { WorkerInstruments } from '../../shared/metrics/instruments.js';
import { workCodes } from '../../shared/metrics/metrics.js';
import type { Outcome } from '../../shared/protocol/outcome.js';
import type { FinishReason } from '../providers/provider.js';
import { Cancelled, LockLost } from './active-jobs.js';
import type { BreakerState } from './breaker.js';
import type { LoadTracker } from './load-tracker.js';

/** What one pool tells of itself as metrics. */
export interface PoolMetrics {
  /** A worker begins with a job that has waited so long, in milliseconds. */
  recordBegun(waitedMs: number): void;
  /** Makes a call and gives what it gives. */
  watchCall<T extends { reason: FinishReason }>(
    call: () => Promise<T>,
    kind: { isRetry: boolean },
  ): Promise<T>;
  recordOutcome(outcome: Outcome): void;
  /** A job broke, or was given up. */
  recordBroken(): void;
  recordBreaker(state: BreakerState): void;
  /** Has every scrape read from these how the pool fares. */
  show(parts: ShownParts): void;
}

interface ShownParts {
  settings: Pick<PoolSettings, 'concurrency'>;
  load: Pick<LoadTracker, 'inFlight'>;
  /** The longest cooldown of a model. */
  cooldown: { readonly leftMs: number };
  /** The worst breaker, of the account or of a model. */
  breaker: { readonly state: BreakerState };
}

type WorkCode = (typeof workCodes)[number];

export function createPoolMetrics(
  { metrics, startAtZero, onScrape }: Omit<WorkerInstruments, 'scrape'>,
  provider: ProviderId,
): PoolMetrics {
  startAtZero({ provider });
  return {
    recordBegun: (waitedMs) => metrics.queueWait.observe({ provider }, Math.max(0, waitedMs) / 1000),
    watchCall: async (call, { isRetry }) => {
      const startedAt = performance.now();
      const note = (code: WorkCode) => {
        metrics.callDuration.observe({ provider }, (performance.now() - startedAt) / 1000);
        metrics.calls.inc({ provider, kind: isRetry ? 'retry' : 'first', code });
      };
      try {
        const reply = await call();
        note(reply.reason === 'blocked' ? 'content_blocked' : 'ok');
        return reply;
      } catch (error) {
        note(codeOfError(error));
        throw error;
      }
    },
    recordOutcome: (outcome) => metrics.jobs.inc({ provider, code: codeOfOutcome(outcome) }),
    recordBroken: () => metrics.jobs.inc({ provider, code: 'internal' }),
    recordBreaker: (state) => metrics.breakerChanges.inc({ provider, state }),
    show: ({ settings, load, cooldown, breaker }) =>
      onScrape(() => {
        metrics.inFlight.set({ provider }, load.inFlight);
        metrics.concurrency.set({ provider }, settings.concurrency);
        metrics.hold.set({ provider }, cooldown.leftMs / 1000);
        for (const state of ['closed', 'open', 'half-open'] as const)
          metrics.breakerState.set({ provider, state }, breaker.state === state ? 1 : 0);
      }),
  };
}

function codeOfError(error: unknown): WorkCode {
  if (error instanceof Cancelled || error instanceof LockLost) return 'cancelled';
  return error instanceof Failure ? known(error.code) : 'internal';
}

function codeOfOutcome(outcome: Outcome): WorkCode {
  switch (outcome.kind) {
    case 'ok':
    case 'truncated':
      return 'ok';
    case 'blocked':
      return 'content_blocked';
    case 'cancelled':
      return 'cancelled';
    case 'failed':
      return known(outcome.code);
  }
}

const known = (code: string): WorkCode => workCodes.find((listed) => listed === code) ?? 'internal';
