import { type ProviderId, providerIds } from '../../../shared/contracts/contract.js';
import type {
  RecentRequest,
  RecentRequests as RecentRequestsAnswer,
  Samples,
} from '../../../shared/contracts/history.js';
import type { FleetState } from '../../../shared/fleet/fleet-state.js';
import type { Log } from '../../../shared/runtime/log.js';
import { afterCheck } from '../../chat/admission.js';
import { HistoryExchange } from './exchange.js';
import { HistoryFeed } from './history-feed.js';
import { RecentRequests, type RequestFilter } from './recent-requests.js';
import { goodEnds, mergeSamples, SampleLog, sampleEveryMs } from './sample-log.js';

type LoadSource = Pick<FleetState, 'readLoads'>;

/** The recent past for operators: the ended chats of all API processes, and how busy the providers were. */
export class History {
  readonly #requests = new RecentRequests();
  readonly #samples: SampleLog;
  readonly #log: Log;
  readonly exchange: HistoryExchange;
  #fleet: LoadSource | undefined;

  constructor({ log }: { log: Log }) {
    this.#log = log;
    this.#samples = new SampleLog({ readLoads: async () => (await this.#fleet?.readLoads()) ?? [] });
    this.exchange = new HistoryExchange({ requests: this.#requests, samples: this.#samples, log });
  }

  start(fleet: LoadSource): this {
    this.#fleet = fleet;
    this.#samples.start();
    return this;
  }

  stop(): void {
    this.#samples.stop();
  }

  recordArrival(provider: ProviderId): void {
    this.#samples.recordArrival(provider);
  }

  /** `user` is the id of the request's user. */
  recordEnd(request: RecentRequest, user: string): void {
    this.#requests.add(request, { endedAt: Date.now(), isOwn: true });
    this.#samples.recordEnd(request);
    if (!goodEnds.has(request.code)) this.#log.info(describeFailure(request, user), 'chat failed');
  }

  async readRequests(filter: RequestFilter): Promise<RecentRequestsAnswer> {
    await this.exchange.refresh();
    return { ...this.#known(), requests: this.#requests.list(filter) };
  }

  async readSamples(provider: ProviderId | undefined): Promise<Samples> {
    await this.exchange.refresh();
    const samples = mergeSamples([this.#samples.list(), ...this.exchange.samples]);
    return {
      ...this.#known(),
      everyMs: sampleEveryMs,
      samples: samples.filter((sample) => provider === undefined || sample.provider === provider),
    };
  }

  /** The events from now on, for one reader. */
  feed(wanted: { requests: boolean; samples: boolean }): HistoryFeed {
    return new HistoryFeed(wanted, {
      requests: this.#requests,
      samples: () => mergeSamples([this.#samples.list(), ...this.exchange.samples].map(latest)),
      touch: () => this.exchange.touch(),
    });
  }

  #known() {
    const { processes, isPartial } = this.exchange;
    return { at: new Date().toISOString(), processes, isPartial };
  }
}

/** Enough to find what a feed has not sent yet. */
const latest = <T>(samples: readonly T[]): readonly T[] => samples.slice(-4 * providerIds.length);

function describeFailure(
  { id, user: userName, provider, model, code, attempts }: RecentRequest,
  user: string,
) {
  const checked = attempts.map(({ model: asked, ...attempt }) => ({
    ...attempt,
    // A worker may refuse a name that no API process could check.
    model: attempt.code === 'invalid_request' ? undefined : asked,
  }));
  const isChecked = afterCheck.has(code) || checked.some((attempt) => attempt.model === model);
  return { requestId: id, user, userName, provider, ...(isChecked && { model }), attempts: checked, code };
}
