import type { ProviderId } from '../contracts/contract.js';
import { chatAndAttemptOf } from '../protocol/attempts.js';
import { type ChatEnd, encodeEntry, encodeOrigin, type NewEntry, type Origin } from '../protocol/entries.js';
import { resultTimeoutMs } from '../protocol/stored-chat.js';
import type { Log } from '../runtime/log.js';
import { retry } from '../runtime/retry.js';
import { type LostRuns, type Outbox, OutboxFull } from './queue-store.js';

interface LedgerWriterDeps {
  outbox: Pick<Outbox, 'append'>;
  metrics: { readonly ledgerDropped: { inc(labels: object, value?: number): void } };
  log: Log;
}

/** Appends entries to the outbox: those that come while others are being appended go together. */
export class LedgerWriter {
  readonly #deps: LedgerWriterDeps;
  #waiting: string[] = [];
  #next: Promise<void> | undefined;
  #underWay: Promise<void> = Promise.resolve();

  constructor(deps: LedgerWriterDeps) {
    this.#deps = deps;
  }

  /** Resolves once the entries are in the outbox, or were dropped: after ten seconds, or if it is full. */
  append(...entries: readonly NewEntry[]): Promise<void> {
    if (entries.length === 0) return Promise.resolve();
    this.#waiting.push(...entries.map(encodeEntry));
    this.#next ??= this.#underWay.then(() => this.#appendWaiting());
    return this.#next;
  }

  /** Resolves once everything that was appended is in the outbox, or was dropped. */
  async flush(): Promise<void> {
    await (this.#next ?? this.#underWay);
  }

  #appendWaiting(): Promise<void> {
    const entries = this.#waiting;
    this.#waiting = [];
    this.#next = undefined;
    this.#underWay = this.#appendAll(entries);
    return this.#underWay;
  }

  async #appendAll(entries: readonly string[]): Promise<void> {
    const { outbox, metrics, log } = this.#deps;
    const shouldRetry = (error: unknown) => !(error instanceof OutboxFull);
    try {
      await retry(() => outbox.append(entries), { pauseMs: 100, maxMs: resultTimeoutMs, shouldRetry });
    } catch (err) {
      metrics.ledgerDropped.inc({}, entries.length);
      log.error({ err, entries: entries.length }, 'entries of the ledger dropped');
    }
  }
}

/** A job's name, or what is known of who asked for it where an older release has named it. */
export const originByName = (name: string, known: Pick<Origin, 'provider'> & Partial<Origin>): string =>
  name.startsWith('{') ? name : encodeOrigin({ user: '', api: '', deadline: 0, ...known });

/** The entries of jobs whose runs were lost; `end` is how their chats have ended with that, if they have. */
export const lostEntries = (
  provider: ProviderId,
  jobs: readonly LostRuns[],
  end?: Omit<ChatEnd, 'provider'>,
): NewEntry[] =>
  jobs
    .filter(({ lost }) => lost > 0)
    .map(({ id, name, addedAt, lost: runs }) => ({
      kind: 'lost',
      ...chatAndAttemptOf(id),
      origin: originByName(name, { provider }),
      addedAt,
      provider,
      runs,
      end: end && { ...end, provider },
    }));
