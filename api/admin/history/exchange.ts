import { randomUUID } from 'node:crypto';
import { setTimeout as delayFor } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import {
  type HistoryAnswer,
  type HistoryAsk,
  historyAnswerSchema,
  historyAskSchema,
  historyTopics,
  maxRequestsSent,
  sentRequestSchema,
} from '../../../shared/protocol/history.js';
import { writtenVersion } from '../../../shared/protocol/version.js';
import type { Relay } from '../../../shared/queue/relay.js';
import type { Log } from '../../../shared/runtime/log.js';
import { retry, withTimeout } from '../../../shared/runtime/retry.js';
import { type EndedRequest, maxRequests, type RecentRequests } from './recent-requests.js';
import { type SampleLog, sampleEveryMs, type TimedSample } from './sample-log.js';

/** Bytes of the chats of one message, far below what the relay takes. */
const maxBytes = 200_000;
/** Messages of one answer: all chats that are kept, unless their names are long. */
const maxMessages = 5;

type RequestsMessage = Pick<HistoryAnswer, 'after' | 'last' | 'requests'>;

/**
 * The chats that became known after a number, up to the `last`, in that order, as at least one message. The next
 * question fetches those for which there is no room. Invalid chats are left out, because they would take the room of
 * others.
 */
function packRequests(
  ended: readonly EndedRequest[],
  { after, last, now }: { after: number; last: number; now: number },
): RequestsMessage[] {
  let current: RequestsMessage = { after, last: after, requests: [] };
  const messages = [current];
  let bytes = 0;
  for (const one of ended.slice(-maxRequests)) {
    const { receivedAt: _, ...request } = one.request;
    const sent = { ...request, endedAgoMs: Math.max(0, now - one.endedAt) };
    if (!sentRequestSchema.safeParse(sent).success) continue;
    const size = Buffer.byteLength(JSON.stringify(sent));
    if (current.requests.length >= maxRequestsSent || bytes + size > maxBytes) {
      if (messages.length >= maxMessages) return messages;
      current = { after: current.last, last: current.last, requests: [] };
      messages.push(current);
      bytes = 0;
    }
    current.requests.push(sent);
    current.last = one.number;
    bytes += size;
  }
  current.last = last;
  return messages;
}

interface ExchangeDeps {
  requests: RecentRequests;
  samples: Pick<SampleLog, 'list'>;
  log: Log;
  /** The time, in milliseconds since the epoch. */
  now?: () => number;
  /** Waits for so many milliseconds. */
  delay?: (ms: number) => Promise<unknown>;
}

type Channel = Pick<Relay, 'publish' | 'subscribe' | 'send' | 'receive'>;

interface Peer {
  /** All its chats up to this number have come. */
  last: number;
  heardAt: number;
  /** When its last samples came. */
  sampledAt: number;
  /** Its samples by slot and provider. */
  readonly samples: Map<string, TimedSample>;
}

const askEveryMs = 1000;
/** Unread rounds after which a process counts as having no readers; a round begins with a question to the others. */
const readFor = 4;
/** Unread rounds for which the others' answers are kept: a reader may look only now and then. */
const keptFor = 60;
/** The part of a round for which the first reader waits for the others' answers. */
const answersWithin = 0.2;
/** The part of a round in which a question has to be published. */
const publishedWithin = 0.8;
/** Rounds after which a process that has not answered does not count: it has missed three questions. */
const silentAfter = 3.5;
/** The part of a round in which another question of the same process is not answered. */
const apart = 0.5;
/** Processes whose samples are kept, and whose questions are remembered. */
const maxPeers = 50;
const historyMs = 600_000;
/** Samples of a slot may be taken a second late. */
const recentMs = 4 * sampleEveryMs;
/** A provider has a sample for each slot. */
const maxSamples = 4 * (historyMs / sampleEveryMs + 1);

/** While the history is read here, and only then, asks the other API processes for theirs once a second. */
export class HistoryExchange {
  readonly #deps: Required<ExchangeDeps>;
  readonly #id = randomUUID();
  /** The other processes that were heard last, by their ids. */
  readonly #peers = new LRUCache<string, Peer>({ max: maxPeers });
  /** The processes that were answered a moment ago. */
  readonly #answered: LRUCache<string, true>;
  #channel: Channel | undefined;
  #readAt = Number.NEGATIVE_INFINITY;
  #askedAt = Number.NEGATIVE_INFINITY;
  #isReachable = false;
  #asking: Promise<void> | undefined;
  #running: Promise<void> | undefined;

  constructor(deps: ExchangeDeps) {
    this.#deps = { now: Date.now, delay: delayUnreferenced, ...deps };
    this.#answered = new LRUCache({
      max: maxPeers,
      ttl: apart * askEveryMs,
      ttlResolution: 0,
      perf: { now: () => performance.now() },
    });
  }

  /** Answers the others from now on, and can ask them; tries until the signal aborts, and never rejects. */
  async connect(channel: Channel, signal: AbortSignal): Promise<void> {
    const options = { pauseMs: 1000, maxPauseMs: 30_000, unref: true, signal };
    await retry(() => this.#subscribe(channel), options).catch((err) =>
      this.#deps.log.debug({ err }, 'history not shared'),
    );
  }

  async #subscribe(channel: Channel): Promise<void> {
    await channel.receive(historyTopics.answer(this.#id), historyAnswerSchema, (answer) =>
      this.#onAnswer(answer),
    );
    await channel.subscribe(historyTopics.ask, historyAskSchema, (ask) => void this.#onAsk(ask));
    this.#channel = channel;
  }

  /** Tells that a reader has looked. */
  touch(): void {
    this.#readAt = performance.now();
    this.#running ??= this.#askWhileRead();
  }

  /** Touches, and resolves when the others had time to answer: at once if they were asked just now. Never rejects. */
  async refresh(): Promise<void> {
    const isFresh = performance.now() - this.#askedAt < 2 * askEveryMs;
    this.touch();
    if (isFresh) return;
    await this.#asking;
    if (this.#isReachable) await this.#deps.delay(answersWithin * askEveryMs);
  }

  /** API processes that are known, this one included. */
  get processes(): number {
    const since = performance.now() - silentAfter * askEveryMs;
    return 1 + [...this.#peers.values()].filter(({ heardAt }) => heardAt >= since).length;
  }

  /** Whether the others could not be asked. */
  get isPartial(): boolean {
    return !this.#isReachable;
  }

  get samples(): TimedSample[][] {
    return [...this.#peers.values()].map(({ samples }) => [...samples.values()]);
  }

  async #askWhileRead(): Promise<void> {
    for (;;) {
      const unreadMs = performance.now() - this.#readAt;
      if (unreadMs > keptFor * askEveryMs) break;
      if (unreadMs <= readFor * askEveryMs) {
        this.#asking = this.#ask();
        await this.#asking;
      }
      await this.#deps.delay(askEveryMs);
    }
    this.#running = undefined;
    this.#peers.clear();
    this.#deps.requests.forgetOthers();
  }

  async #ask(): Promise<void> {
    const now = performance.now();
    this.#askedAt = now;
    const ask: HistoryAsk = {
      v: writtenVersion,
      from: this.#id,
      known: Object.fromEntries(
        [...this.#peers].map(([id, { last, sampledAt }]) => {
          const samplesOfMs = Math.min(historyMs, now - sampledAt + recentMs);
          return [id, { last, samplesOfMs }];
        }),
      ),
    };
    try {
      if (this.#channel === undefined) throw new Error('not connected');
      await withTimeout(publishedWithin * askEveryMs, this.#channel.publish(historyTopics.ask, ask));
      this.#isReachable = true;
    } catch (err) {
      this.#isReachable = false;
      this.#deps.log.debug({ err }, 'history not asked for');
    }
  }

  async #onAsk({ from, known }: HistoryAsk): Promise<void> {
    if (from === this.#id || this.#answered.has(from)) return;
    this.#answered.set(from, true);
    const { requests, samples, log } = this.#deps;
    const now = this.#deps.now();
    const { last: after, samplesOfMs } = known[this.#id] ?? { last: 0, samplesOfMs: historyMs };
    const own = requests.after(after).filter(({ isOwn }) => isOwn);
    const packed = packRequests(own, { after, last: requests.last, now });
    const recent = samples.list().filter(({ slot }) => slot >= now - samplesOfMs);
    const sent = recent.map(({ slot, ...sample }) => ({ ...sample, agoMs: Math.max(0, now - slot) }));
    const head = { v: writtenVersion, from: this.#id } as const;
    const answers: HistoryAnswer[] = packed.map((message, n) => ({
      ...head,
      ...message,
      samples: n === 0 ? sent : [],
    }));
    try {
      for (const answer of answers) await this.#channel?.send(historyTopics.answer(from), answer);
    } catch (err) {
      log.debug({ err }, 'history not sent');
    }
  }

  #onAnswer({ from, after, last, requests, samples }: HistoryAnswer): void {
    const unreadMs = performance.now() - this.#readAt;
    if (from === this.#id || unreadMs > keptFor * askEveryMs) return;
    const [now, heardAt] = [this.#deps.now(), performance.now()];
    const never = { last: 0, sampledAt: Number.NEGATIVE_INFINITY };
    const peer: Peer = this.#peers.get(from) ?? { ...never, heardAt, samples: new Map() };
    this.#peers.set(from, peer);
    peer.heardAt = heardAt;
    if (samples.length > 0) peer.sampledAt = heardAt;
    // Lost answers, before they are asked for again.
    if (after <= peer.last) peer.last = Math.max(peer.last, last);
    for (const { endedAgoMs, ...sent } of requests) {
      const endedAt = now - endedAgoMs;
      const receivedAt = new Date(endedAt - sent.endedMs).toISOString();
      this.#deps.requests.add({ ...sent, receivedAt }, { endedAt, isOwn: false });
    }
    for (const { agoMs, ...sample } of samples) {
      // The nearest by this machine's clock.
      const slot = Math.round((now - agoMs) / sampleEveryMs) * sampleEveryMs;
      peer.samples.set(`${slot} ${sample.provider}`, { ...sample, slot });
    }
    for (const [key, { slot }] of peer.samples)
      if (slot < now - historyMs || peer.samples.size > maxSamples) peer.samples.delete(key);
  }
}

/** Waits without keeping the process alive. */
const delayUnreferenced = (ms: number): Promise<unknown> => delayFor(ms, undefined, { ref: false });
