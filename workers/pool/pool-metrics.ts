import type { PoolConfig } from '../../shared/config/pool-config.js';
import type { ProviderId } from '../../shared/contracts/contract.js';
import type { WorkerInstruments } from '../../shared/metrics/instruments.js';
import { nextOf } from '../../shared/protocol/outcome.js';
import type { BreakerState } from '../gate/breaker.js';
import type { Gate } from '../gate/gate.js';
import type { Call } from '../job/call.js';
import { codeOfError, codeOfOutcome, type JobEnd, type WorkCode } from '../job/outcomes.js';
import type { JobListener, RunningJob } from '../job/running-job.js';
import type { Load } from '../job/running-jobs.js';
import type { FinishReason } from '../providers/provider.js';
import type { CallRecord, CallResult } from './backlog.js';

type Instruments = Omit<WorkerInstruments, 'scrape'>;
type Calls = Pick<CallRecord, 'record'>;

interface ObservedPool {
  settings: { readonly current: Pick<PoolConfig, 'concurrency'> };
  load: () => Pick<Load, 'inFlight'>;
  gate: Pick<Gate, 'maxHeldMs' | 'worstState'>;
}

/** The metrics of one pool. Labels cannot name models: hold and breaker are the longest and the worst of all. */
export class PoolMetrics implements JobListener {
  readonly #instruments: Instruments;
  readonly #provider: ProviderId;
  readonly #calls: Calls;

  constructor(instruments: Instruments, provider: ProviderId, calls: Calls) {
    this.#instruments = instruments;
    this.#provider = provider;
    this.#calls = calls;
    instruments.startAtZero({ provider });
  }

  begun({ timings }: Pick<RunningJob, 'timings'>): void {
    this.#instruments.metrics.queueWait.observe({ provider: this.#provider }, timings.queueMs / 1000);
  }

  /** Calls the provider and returns its result; records the call's time, also to a first delta, and its end. */
  async watchCall<C extends Pick<Call, 'kind' | 'show'>, T extends { reason: FinishReason }>(
    call: C,
    next: (call: C) => Promise<T>,
  ): Promise<T> {
    const provider = this.#provider;
    const { callDuration, calls, firstDelta } = this.#instruments.metrics;
    const startedAt = performance.now();
    const record = (code: WorkCode) => {
      const tookMs = performance.now() - startedAt;
      this.#calls.record(callResultOf(code), { tookMs, code: noErrors.includes(code) ? undefined : code });
      callDuration.observe({ provider }, tookMs / 1000);
      calls.inc({ provider, kind: call.kind === 'first' ? 'first' : 'retry', code });
    };
    const show = () => {
      firstDelta.observe({ provider }, (performance.now() - startedAt) / 1000);
      call.show();
    };
    try {
      const reply = await next({ ...call, show });
      record(reply.reason === 'blocked' ? 'content_blocked' : 'ok');
      return reply;
    } catch (error) {
      record(codeOfError(error));
      throw error;
    }
  }

  /** Records the tokens of a job's calls, its outcome, and the provider to which its chat was passed on. */
  ended(job: Pick<RunningJob, 'calls'>, end: JobEnd | undefined): void {
    const provider = this.#provider;
    const { fallbacks, tokens } = this.#instruments.metrics;
    for (const { tokens: counted } of job.calls)
      for (const direction of ['input', 'output'] as const)
        tokens.inc({ provider, direction }, counted[direction]);
    if (end === undefined) return;
    this.countJob(codeOfOutcome(end.own));
    const next = nextOf(end.outcome)?.provider;
    if (next) fallbacks.inc({ provider, next });
  }

  recordBreaker(state: BreakerState): void {
    this.#instruments.metrics.breakerChanges.inc({ provider: this.#provider, state });
  }

  observe({ settings, load, gate }: ObservedPool): void {
    const { metrics, onScrape } = this.#instruments;
    const provider = this.#provider;
    onScrape(() => {
      metrics.inFlight.set({ provider }, load().inFlight);
      metrics.concurrency.set({ provider }, settings.current.concurrency);
      metrics.hold.set({ provider }, gate.maxHeldMs / 1000);
      for (const state of ['closed', 'open', 'half-open'] as const)
        metrics.breakerState.set({ provider, state }, gate.worstState === state ? 1 : 0);
    });
  }

  /** `internal` for a job that ended in an unexpected error, or was given up. */
  countJob(code: WorkCode): void {
    this.#instruments.metrics.jobs.inc({ provider: this.#provider, code });
  }
}

function callResultOf(code: WorkCode): CallResult {
  if (code === 'ok' || code === 'content_blocked') return 'reply';
  if (code === 'provider_rate_limited') return 'limit';
  return code === 'provider_error' || code === 'provider_timeout' ? 'fault' : 'other';
}

/** A call that its caller cancelled is no error, nor is a request that was refused for what is in it. */
const noErrors = ['ok', 'content_blocked', 'context_length_exceeded', 'cancelled', 'invalid_request'];
