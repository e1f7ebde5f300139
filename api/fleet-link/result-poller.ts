import { setTimeout as delay } from 'node:timers/promises';
import type { ProviderId } from '../../shared/contracts/contract.js';
import { chatKey, currentOf, decodeStoredChat } from '../../shared/protocol/stored-chat.js';
import type { QueueStore } from '../../shared/queue/queue-store.js';
import type { Log } from '../../shared/runtime/log.js';
import type { ChatReceiver, PolledChat } from './chat-receiver.js';
import type { DeadQueues } from './dead-queues.js';
import type { JobRecords } from './job-records.js';

interface ResultPollerDeps {
  chats: ChatReceiver;
  jobRecords: Pick<JobRecords, 'readAll'>;
  store: Pick<QueueStore, 'now' | 'records'>;
  /** Gets each chat whose job waits in its queue or runs. */
  deadQueues: Pick<DeadQueues, 'passOn' | 'sweep'>;
  log: Log;
}

/** How often the records are read, in case a message was lost. */
const pollIntervalMs = 1000;
/** The message for a chat that came less than this ago is most likely still to come. */
const messageDelayMs = 100;
/** Queues that no pool takes jobs from are swept on every nth poll. */
const pollsPerSweep = 5;
/** Jobs read in one command, so that none holds up the store for more than a millisecond or two. */
const pollBatch = 250;

/**
 * Asks the store once a second for the state of the chats in this process: which ended, moved on, were lost or are
 * stranded. Messages only make this earlier: the truth about a chat is in its job's record (`job-records.ts`). It also
 * learns that a worker runs a job now, so that a reader that came late can ask for the text.
 */
export class ResultPoller {
  readonly #deps: ResultPollerDeps;
  readonly #stopping = new AbortController();

  constructor(deps: ResultPollerDeps) {
    this.#deps = deps;
  }

  /** Polls once a second and never twice at once, until `stop`; never rejects. */
  async start(): Promise<void> {
    const { signal } = this.#stopping;
    for (let slot = 0; !signal.aborted; slot += 1) {
      await delay(pollIntervalMs, undefined, { signal, ref: false }).catch(() => undefined);
      if (signal.aborted) return;
      await this.pollDue(slot);
      if (slot % pollsPerSweep === 0) void this.#deps.deadQueues.sweep();
    }
  }

  stop(): void {
    this.#stopping.abort();
  }

  /** Reads the records of these chats, and returns those whose job the store does not know; never rejects. */
  async poll(chats: readonly PolledChat[]): Promise<PolledChat[]> {
    const missing: PolledChat[] = [];
    const ofProvider = async ([provider, own]: [ProviderId, PolledChat[]]) => {
      for (let start = 0; start < own.length; start += pollBatch)
        missing.push(...(await this.#pollBatch(provider, own.slice(start, start + pollBatch))));
    };
    await Promise.all([...Map.groupBy(chats, ({ job }) => job.provider)].map(ofProvider));
    return missing;
  }

  /** Polls the chats that are due. Another process has passed on the missing ones, or they are lost; never rejects. */
  async pollDue(slot: number): Promise<void> {
    const { chats, store, log } = this.#deps;
    const askedAt = store.now();
    const missing = await this.poll(chats.due({ attachedBefore: askedAt - messageDelayMs, slot }));
    const own = missing.filter(({ isPassedOn }) => !isPassedOn);
    const lost = own.filter((chat) => !mayHaveMoved(chat));
    const others = own.filter(mayHaveMoved);
    for (let start = 0; start < others.length; start += pollBatch)
      lost.push(...(await this.#findLost(others.slice(start, start + pollBatch))));
    for (const { id } of lost) if (chats.onLost(id, askedAt)) log.warn({ jobId: id }, 'lost job added again');
  }

  async #pollBatch(provider: ProviderId, chats: readonly PolledChat[]): Promise<PolledChat[]> {
    const { jobRecords, store, log } = this.#deps;
    const readAt = store.now();
    // A chat may move on meanwhile.
    const jobs = chats.map(({ job }) => job);
    const results = await jobRecords.readAll(provider, jobs).catch((err) => {
      log.debug({ err, provider }, 'job records could not be read');
      return undefined;
    });
    if (results === undefined) return [];
    return chats.filter((chat, n) => {
      const result = results[n];
      // A record that cannot be read says nothing about the others.
      if (result?.status !== 'fulfilled')
        log.debug({ err: result?.reason, jobId: chat.id }, 'job record could not be read');
      else if (result.value.state === 'settled') this.#deps.chats.onOutcome(chat.id, result.value.outcome);
      else if (result.value.state === 'unknown') return true;
      else {
        chat.seen(readAt, { isRunning: result.value.state === 'running' });
        void this.#deps.deadQueues.passOn(chat);
      }
      return false;
    });
  }

  async #findLost(chats: readonly PolledChat[]): Promise<PolledChat[]> {
    try {
      const texts = await this.#deps.store.records.readAll(chats.map(({ id }) => chatKey(id)));
      const current = texts.map((text) => text && currentOf(decodeStoredChat(text)));
      return chats.filter(({ id, job }, n) => {
        const next = current[n];
        if (!next || (next.attempt ?? 1) <= (job.attempt ?? 1)) return true;
        this.#deps.chats.onMoved(id, next);
        return false;
      });
    } catch (err) {
      this.#deps.log.debug({ err }, 'records of stored chats could not be read');
      return [];
    }
  }
}

/** Another process may have passed the chat on: then its job has another id. */
const mayHaveMoved = ({ job: { isStored, fallback = [] } }: PolledChat): boolean =>
  isStored === true && fallback.length > 0;
