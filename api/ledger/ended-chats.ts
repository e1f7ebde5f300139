import type { ProviderId } from '../../shared/contracts/contract.js';
import { totalOf } from '../../shared/fleet/chat-totals.js';
import type { Heartbeats } from '../../shared/fleet/heartbeats.js';
import type { EndedAttempt } from '../../shared/protocol/attempts.js';
import { topics } from '../../shared/protocol/messages.js';
import type { EndedChats as Counts } from '../../shared/protocol/stored-chat.js';
import { writtenVersion } from '../../shared/protocol/version.js';
import type { Relay } from '../../shared/queue/relay.js';
import type { Log } from '../../shared/runtime/log.js';
import { singleFlight } from '../../shared/runtime/retry.js';

interface EndedChatsDeps {
  /** False while operators pause or drain the provider: then its chats say nothing about it. */
  isOpen: (provider: ProviderId) => boolean;
  /** A clock that never jumps, in milliseconds. */
  now?: () => number;
}

interface Channel {
  relay: Pick<Relay, 'nodeId' | 'broadcast'>;
  heartbeats: Pick<Heartbeats, 'addChats'>;
}

/** How an attempt at a chat ended. */
export type EndAttempt = Pick<EndedAttempt, 'provider' | 'model' | 'providerError'> & {
  readonly code: string;
};

/** A chat that has ended, and its attempts; none if it was refused. */
interface EndedChat {
  readonly provider: ProviderId;
  readonly model: string | undefined;
  readonly code: string;
  readonly attempts: readonly EndAttempt[];
}

/** The chats at one provider that ended within ten seconds. */
interface Slice extends Counts {
  readonly beganAt: number;
}

const sliceMs = 10_000;
const keptMs = 300_000;
const publishEveryMs = 1000;

/** A chat that ends so has failed by its provider, a breaker, or the load, and not by its caller. */
const faults: ReadonlySet<string> = new Set([
  'provider_error',
  'provider_rate_limited',
  'provider_timeout',
  'provider_unavailable',
  'overloaded',
  'timeout',
]);

/**
 * Counts the chats of this process that ended in the last five minutes while their callers waited, also those that no
 * worker has seen, and publishes the counts: a worker cannot know of them, and all who look have to see the same.
 */
export class EndedChats {
  readonly #deps: Required<EndedChatsDeps>;
  /** The slices of the last five minutes, newest first. */
  #slices: Slice[] = [];

  constructor(deps: EndedChatsDeps) {
    this.#deps = { now: () => performance.now(), ...deps };
  }

  /** A chat counts once at each provider that it was at, by its last attempt there. A refused one has no attempts. */
  record({ attempts, ...refused }: EndedChat): void {
    const all = attempts.length > 0 ? attempts : faults.has(refused.code) ? [refused] : [];
    for (const attempt of new Map(all.map((each) => [each.provider, each])).values()) {
      if (!this.#deps.isOpen(attempt.provider)) continue;
      const slice = this.#sliceOf(attempt.provider);
      slice.ended += 1;
      if (!isFault(attempt)) continue;
      slice.model = slice.failed === 0 || slice.model === attempt.model ? attempt.model : undefined;
      slice.failed += 1;
      slice.code = attempt.code;
    }
  }

  /** The counts of each provider at which a chat has ended. */
  counts(): Counts[] {
    return [...Map.groupBy(this.#recent(), ({ provider }) => provider)].map(([provider, slices]) => {
      const lastCode = slices.find(({ failed }) => failed > 0)?.code;
      return { provider, ...totalOf(slices), code: lastCode };
    });
  }

  /** Publishes the counts once a second while there are any, until the returned function is called. */
  publish({ relay, heartbeats }: Channel, log: Log): () => void {
    let isPublished = false;
    const publish = async () => {
      const chats = this.counts();
      // The others have to hear once that none are left.
      if (chats.length === 0 && !isPublished) return;
      isPublished = chats.length > 0;
      heartbeats.addChats(relay.nodeId, chats);
      await relay.broadcast(topics.processes, { v: writtenVersion, worker: relay.nodeId, pools: [], chats });
    };
    // None are sent behind one that hangs.
    const publishNext = singleFlight(publish, { apartMs: 0 });
    const tryNext = () => void publishNext().catch((err) => log.debug({ err }, 'ended chats not published'));
    const timer = setInterval(tryNext, publishEveryMs).unref();
    return () => clearInterval(timer);
  }

  #recent(): Slice[] {
    const since = this.#deps.now() - keptMs;
    return this.#slices.filter(({ beganAt }) => beganAt > since);
  }

  #sliceOf(provider: ProviderId): Slice {
    const now = this.#deps.now();
    const latest = this.#slices.find((slice) => slice.provider === provider);
    if (latest && now - latest.beganAt < sliceMs) return latest;
    const slice = { provider, beganAt: now, ended: 0, failed: 0 };
    this.#slices = [slice, ...this.#recent()];
    return slice;
  }
}

/** Where the provider refuses the credentials, no caller has done anything wrong. */
const isFault = ({ code, providerError }: EndAttempt): boolean =>
  faults.has(code) || (code === 'provider_rejected' && [401, 403].includes(providerError?.status ?? 0));
