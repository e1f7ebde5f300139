import { type ProviderId, providerIds } from '../../../shared/contract.js';
import type { Heartbeats } from '../../../shared/fleet/heartbeats.js';
import type { RecentRequest, RequestAttempt } from '../../../shared/history.js';
import type { EndedChats as Counts } from '../../../shared/protocol/ended-chats.js';
import { topics } from '../../../shared/protocol/messages.js';
import { writtenVersion } from '../../../shared/protocol/version.js';
import type { Relay } from '../../../shared/queue/relay.js';
import type { Log } from '../../../shared/runtime/log.js';

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
type Ended = Attempt & { readonly endedAt: number; readonly isFault: boolean };

const keptMs = 300_000;
/** Of each provider; they are counted once a second. */
const maxKept = 1000;
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
  readonly #ended = new Map<ProviderId, Ended[]>(providerIds.map((id) => [id, []]));
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
      const ended = this.#ended.get(attempt.provider);
      ended?.push({ ...attempt, endedAt: this.#deps.now(), isFault: isFault(attempt) });
      if (ended && ended.length > 2 * maxKept) ended.splice(0, maxKept);
    }
  }

  /** Of each provider with any. */
  counts(): Counts[] {
    const since = this.#deps.now() - keptMs;
    return [...this.#ended].flatMap(([provider, all]) => {
      const recent = all.slice(-maxKept).filter(({ endedAt }) => endedAt > since);
      const failed = recent.filter((each) => each.isFault);
      const models = new Set(failed.map((each) => each.model));
      const last = failed.at(-1);
      const counts = { ended: recent.length, failed: failed.length, code: last?.code };
      return recent.length > 0
        ? { provider, ...counts, model: models.size === 1 ? last?.model : undefined }
        : [];
    });
  }

  /** Publishes the counts once a second while there are any, until the returned function is called. */
  publish(channel: Channel, log: Log): () => void {
    const publish = () =>
      this.#publish(channel).catch((err) => log.debug({ err }, 'ended chats not published'));
    const timer = setInterval(() => void publish(), publishEveryMs).unref();
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
}

/** Where the provider refuses the credentials, no caller has done anything wrong. */
const isFault = ({ code, providerError }: Attempt): boolean =>
  faults.has(code) || (code === 'provider_rejected' && [401, 403].includes(providerError?.status ?? 0));
