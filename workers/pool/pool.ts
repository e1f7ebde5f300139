import type { ProviderId } from '../../shared/contracts/contract.js';
import type { WorkerInstruments } from '../../shared/metrics/instruments.js';
import {
  type PoolHeartbeat,
  type RateLimitMessage,
  rateLimitSchema,
  topics,
} from '../../shared/protocol/messages.js';
import { writtenVersion } from '../../shared/protocol/version.js';
import { type Queues, queueOf } from '../../shared/queue/channels.js';
import { closedInTime } from '../../shared/runtime/retry.js';
import { Gate, type GateOptions } from '../gate/gate.js';
import type { GateChange } from '../gate/gated-call.js';
import type { JobListener } from '../job/running-job.js';
import type { Provider } from '../providers/provider.js';
import { Backlog, CallRecord, ServiceTimes } from './backlog.js';
import { describePool, type Heartbeat } from './heartbeat.js';
import type { LiveSettings } from './live-settings.js';
import { PoolMetrics } from './pool-metrics.js';
import { ClockGuard, PoolThrottle } from './pool-throttle.js';
import { type Grace, PoolWorker, type PoolWorkerTools } from './pool-worker.js';

interface PoolDeps extends PoolWorkerTools, Pick<GateOptions, 'imageRoom'> {
  provider: Provider;
  settings: LiveSettings;
  queues: Queues;
  /** The one heartbeat of this process. */
  heartbeat: Heartbeat;
  instruments: WorkerInstruments;
}

/** The worker of one provider in this process, with all that decides when it takes jobs, at once after a change. */
export class Pool {
  readonly id: ProviderId;
  readonly #deps: PoolDeps;
  readonly #metrics: PoolMetrics;
  readonly #backlog: Backlog;
  readonly #gate: Gate;
  readonly #worker: PoolWorker;
  readonly #clock: ClockGuard;
  readonly #throttle: PoolThrottle;
  readonly #describe: () => Promise<PoolHeartbeat>;
  #isStarted = false;

  constructor(shared: PoolDeps) {
    const { provider, store, queues, jobs } = shared;
    const log = shared.log.child({ provider: provider.id });
    this.id = provider.id;
    this.#deps = { ...shared, log };
    const [calls, times] = [new CallRecord(), new ServiceTimes()];
    this.#metrics = new PoolMetrics(shared.instruments, provider.id, calls);
    this.#backlog = new Backlog({ queue: queueOf(queues, provider.id) });
    this.#gate = this.#createGate();
    this.#clock = new ClockGuard({ check: () => store.check(), onChange: () => this.#apply(), log });
    const parts = {
      ...this.#deps,
      calls,
      times,
      metrics: this.#metrics,
      load: () => jobs.loadOf(provider.id),
      backlog: this.#backlog,
      gate: this.#gate,
      clock: this.#clock,
    };
    this.#metrics.observe(parts);
    this.#worker = new PoolWorker({ ...parts, listeners: [this.#metrics, times, this.#createListener()] });
    const throttle = new PoolThrottle({ ...parts, worker: this.#worker.bullWorker });
    this.#throttle = throttle;
    this.#describe = () => describePool({ ...parts, throttle });
  }

  /** Takes jobs, and resolves once that has been published; the store must be ready. */
  async start(): Promise<void> {
    const { settings, relay, heartbeat, workerName } = this.#deps;
    const { version } = settings;
    this.#gate.force(settings.current.breaker);
    this.#throttle.applyFirst();
    await this.#worker.start();
    // Not before: applying settings resumes BullMQ's worker, which would take jobs before cancels are listened for.
    this.#isStarted = true;
    settings.onChange(() => this.#onSettings());
    if (settings.version !== version) this.#onSettings();
    this.#clock.start();
    const subscribing = relay.subscribe(topics.limit(this.id), rateLimitSchema, (limit) => {
      if (limit.worker !== workerName) this.#gate.hold(limit);
    });
    await Promise.all([subscribing, heartbeat.start(this.#describe)]);
  }

  /** Takes no new jobs and waits for the running ones; jobs that outlast their grace are aborted and fail. */
  async stop(grace: Grace): Promise<void> {
    this.#clock.stop();
    this.#gate.close();
    const closed = this.#worker.close(grace);
    await closedInTime(this.#deps.heartbeat.stop(this.#describe));
    await closed;
    this.#gate.dispose();
    this.#deps.provider.close();
  }

  #createListener(): JobListener {
    return {
      taken: () => this.#deps.heartbeat.publishIfLate(),
      ended: () => {
        // While the account's breaker probes, the end of a job makes room for another.
        if (this.#gate.account.state === 'half-open') this.#throttle.apply();
        this.#deps.heartbeat.publishIfLate();
      },
    };
  }

  #createGate(): Gate {
    const { settings, imageRoom } = this.#deps;
    return new Gate({
      times: () => ({ timeoutMs: settings.current.timeoutMs, resetMs: settings.current.breakerResetMs }),
      concurrency: () => settings.current.concurrency,
      namedModels: () => {
        const { model, models = [] } = settings.current;
        return model === undefined ? models : [model, ...models];
      },
      imageRoom,
      onChange: (change) => this.#onGateChange(change),
      onParked: () => this.#throttle.applySoon(),
      publishLimit: (limit) => this.#publishLimit(limit),
    });
  }

  #onGateChange({ state, model, user }: GateChange): void {
    if (state !== undefined) {
      this.#deps.log.warn({ breaker: state, model, user }, 'breaker changed');
      this.#metrics.recordBreaker(state);
    }
    if (model !== undefined || user !== undefined) this.#deps.heartbeat.publish();
    else if (this.#isStarted) this.#apply();
  }

  #onSettings(): void {
    this.#gate.force(this.#deps.settings.current.breaker);
    this.#gate.wake();
    this.#apply();
  }

  #apply(): void {
    this.#throttle.apply();
    this.#backlog.forget();
    this.#deps.heartbeat.publish();
  }

  /** One account serves all workers of a provider: a 429 to one of them concerns the others. */
  #publishLimit(limit: Pick<RateLimitMessage, 'model' | 'holdMs' | 'user'>): void {
    const { relay, workerName: worker, log } = this.#deps;
    const { id: provider } = this;
    log.warn(limit, 'provider rate limited');
    const message: RateLimitMessage = { v: writtenVersion, provider, worker, ...limit };
    relay.publish(topics.limit(provider), message).catch((err) => log.debug({ err }, 'limit not published'));
  }
}
