import { type ProviderId, providerIds } from '../../../shared/contract.js';
import type { Heartbeats } from '../../../shared/fleet/heartbeats.js';
import type { RecentRequest, RequestAttempt } from '../../../shared/history.js';
import type { EndedChats as Counts } from '../../../shared/protocol/ended-chats.js';
import { topics } from '../../../shared/protocol/messages.js';
import { writtenVersion } from '../../../shared/protocol/version.js';
import type { Relay } from '../../../shared/queue/relay.js';
import type { Log } from '../../../shared/runtime/log.js';
import { singleFlight } from '../../../shared/runtime/single-flight.js';

interface EndedChatsDeps {
  /** False while operators pause or drain the provider: then its chats say nothing about it. */
  isOpen: (provider: ProviderId) => boolean;
  /** A clock that never jumps, in milliseconds. */
  now?: () => number;
}

/** The relay, and what this process knows of the fleet. */
interface Channel {
  readonly relay: Pick<Relay, 'nodeId' | 'broadcast'>;
  readonly heartbeats: Pick<Heartbeats, 'addChats'>;
}

type Attempt = Pick<RequestAttempt, 'provider' | 'model' | 'providerError'> & { readonly code: string };

/** The chats at one provider that ended within ten seconds. */
interface Slice {
  readonly beganAt: number;
  ended: number;
  failed: number;
  /** Of the last that failed. */
  code?: string;
  /** Of those that failed; a third one would change nothing. */
  readonly models: Set<string | undefined>;
}

const sliceMs = 10_000;
const keptMs = 300_000;
const publishEveryMs = 1000;

/** A chat that ends so has failed by its provider, a breaker, or the load, and not by its caller. */
const faults: ReadonlySet<string> = new Set([
  ...['provider_error', 'provider_rate_limited', 'provider_timeout', 'provider_unavailable'],
  ...['overloaded', 'timeout'],
]);

/**
 * Counts the chats of this process that ended in the last five minutes while their callers waited, also those that no
 * worker has seen, and publishes the counts: a worker cannot know of them, and all who look have to see the same.
 */
export class EndedChats {
  readonly #deps: Required<EndedChatsDeps>;
  /** Oldest first. */
  readonly #slices = new Map<ProviderId, Slice[]>(providerIds.map((id) => [id, []]));
  #isPublished = false;

  constructor(deps: EndedChatsDeps) {
    this.#deps = { now: () => performance.now(), ...deps };
  }

  /** A chat counts once at each provider that it was at, by its last attempt there. A refused one has no attempts. */
  record({ attempts, ...refused }: Pick<RecentRequest, 'provider' | 'model' | 'code' | 'attempts'>): void {
    const all: readonly Attempt[] =
      attempts.length > 0 ? attempts : faults.has(refused.code) ? [refused] : [];
    for (const attempt of new Map(all.map((each) => [each.provider, each])).values()) {
      if (!this.#deps.isOpen(attempt.provider)) continue;
      const slice = this.#sliceOf(attempt.provider);
      slice.ended += 1;
      if (!isFault(attempt)) continue;
      slice.failed += 1;
      slice.code = attempt.code;
      if (slice.models.size < 2) slice.models.add(attempt.model);
    }
  }

  /** Of each provider with any. */
  counts(): Counts[] {
    const since = this.#deps.now() - keptMs;
    return [...this.#slices].flatMap(([provider, all]) => {
      const recent = all.filter(({ beganAt }) => beganAt > since);
      const sum = (field: 'ended' | 'failed') => recent.reduce((total, slice) => total + slice[field], 0);
      const models = [...new Set(recent.flatMap((slice) => [...slice.models]))];
      const code = recent.findLast((slice) => slice.failed > 0)?.code;
      const counts = { ended: sum('ended'), failed: sum('failed'), code };
      return counts.ended > 0
        ? { provider, ...counts, model: models.length === 1 ? models[0] : undefined }
        : [];
    });
  }

  /** Publishes the counts once a second while there are any, until the returned function is called. */
  publish(channel: Channel, log: Log): () => void {
    // None are sent behind one that hangs.
    const publish = singleFlight(() => this.#publish(channel), { apartMs: 0 });
    const tryToPublish = () => void publish().catch((err) => log.debug({ err }, 'ended chats not published'));
    const timer = setInterval(tryToPublish, publishEveryMs).unref();
    return () => clearInterval(timer);
  }

  async #publish({ relay, heartbeats }: Channel): Promise<void> {
    const chats = this.counts();
    // The others have to hear once that none are left.
    if (chats.length === 0 && !this.#isPublished) return;
    this.#isPublished = chats.length > 0;
    heartbeats.addChats(relay.nodeId, chats);
    await relay.broadcast(topics.processes, { v: writtenVersion, worker: relay.nodeId, pools: [], chats });
  }

  #sliceOf(provider: ProviderId): Slice {
    const now = this.#deps.now();
    const slices = this.#slices.get(provider) ?? [];
    const latest = slices.at(-1);
    if (latest && now - latest.beganAt < sliceMs) return latest;
    const slice: Slice = { beganAt: now, ended: 0, failed: 0, models: new Set() };
    this.#slices.set(provider, [...slices.filter(({ beganAt }) => beganAt > now - keptMs), slice]);
    return slice;
  }
}

/** Where the provider refuses the credentials, no caller has done anything wrong. */
const isFault = ({ code, providerError }: Attempt): boolean =>
  faults.has(code) || (code === 'provider_rejected' && [401, 403].includes(providerError?.status ?? 0));
