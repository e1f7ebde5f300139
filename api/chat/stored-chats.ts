import type { UserIdentity } from '../../db/access/users.js';
import type { ChatStatus, ProviderId } from '../../shared/contracts/contract.js';
import { Failure } from '../../shared/failures.js';
import { encodeStoredResult, type StoredChat } from '../../shared/protocol/stored-chat.js';
import type { RecordStore } from '../../shared/queue/queue-store.js';
import { retry, storeTimeoutMs, withTimeout } from '../../shared/runtime/retry.js';
import type { JobResult } from '../fleet-link/chat-receiver.js';
import type { FleetLink } from '../fleet-link/fleet-link.js';
import type { ResolvedChat, StoredChatCommand } from './chat-command.js';
import { ChatRecords, isOwnedBy } from './chat-records.js';
import { statusOf } from './chat-result.js';
import { type FoundChat, IdempotentEntry, type NewChat, toPendingJob } from './idempotent-entry.js';
import type { LiveChat } from './live-chat.js';
import type { ChatListener } from './live-chats.js';
import type { StoredAnswers } from './stored-answers.js';

interface ChatName {
  /** The user who may see the chat; `any` for operators. */
  owner: UserIdentity | 'any';
  id: string;
}

interface StoredChatsDeps {
  records: RecordStore;
  link: Pick<FleetLink, 'assertConnected' | 'read' | 'cancel' | 'end'>;
  /** How long the records stay after the deadline, in milliseconds. */
  resultTtlMs: number;
  answers: Pick<StoredAnswers, 'reserve'>;
  /** The clock of the deadlines, in milliseconds since the epoch: the store's. */
  now: () => number;
}

/** The pauses before a cancel is tried again: half a minute in all, because many may wait for the same store. */
const retryWhileDown = { pauseMs: 1000, maxPauseMs: 16_000, maxTries: 6, unref: true };

/** The rules for creating, joining, reading and cancelling stored chats; all throw `queue_unavailable`. */
export class StoredChats {
  readonly #deps: StoredChatsDeps;
  readonly #records: ChatRecords;
  readonly #entry: IdempotentEntry;

  constructor(deps: StoredChatsDeps) {
    this.#deps = deps;
    this.#records = new ChatRecords(deps.records, deps.now);
    this.#entry = new IdempotentEntry({ ...deps, records: this.#records });
  }

  /** See `IdempotentEntry.find`; throws `timeout` when the deadline passes first. */
  find(command: StoredChatCommand, deadline: number): Promise<FoundChat> {
    return this.#inTime(this.#entry.find(command), deadline, command.provider);
  }

  /** See `IdempotentEntry.open`; throws `timeout` when the deadline passes first. */
  open(command: StoredChatCommand, newChat: NewChat): Promise<ResolvedChat> {
    return this.#inTime(this.#entry.open(command, newChat), newChat.deadline, command.provider);
  }

  /** The chat and what has become of it; throws `not_found` unless it is the owner's. */
  read(name: ChatName): Promise<{ chat: StoredChat; result: JobResult; status: ChatStatus }> {
    return this.#inTime(this.#read(name));
  }

  /** Cancels the chat unless it has ended; throws `not_found` unless it is the owner's. */
  cancel(name: ChatName): Promise<void> {
    return this.#inTime(this.#cancel(name));
  }

  /**
   * Cancels the chat of any user for an operator, also one that is not stored, once `audit` has recorded it with the id
   * of the user. Does nothing to a stored one that has ended; throws `not_found` where none is stored or under way.
   */
  async cancelAny(id: string, audit: (user: string) => Promise<void>): Promise<void> {
    const chat = await this.#inTime(this.#records.readChat(id));
    if (chat === undefined) return this.#deps.link.end(id, audit);
    const { status } = await this.read({ owner: 'any', id });
    if (hasEnded.has(status) || status === 'cancelled') return;
    await audit(chat.ownerId);
    await this.cancel({ owner: 'any', id });
  }

  /** Begins to cancel a chat, as one whose add was not confirmed; tries for half a minute, and never throws. */
  cancelUnconfirmed(name: ChatName): void {
    void retry(() => this.cancel(name), retryWhileDown).catch(() => undefined);
  }

  /** Begins to cancel the stored ones of these chats whose users are suspended; never throws. */
  cancelSuspended(chats: readonly LiveChat[], users: { isSuspended(name: string): boolean }): void {
    for (const { id, isStored, opening } of chats)
      if (isStored && users.isSuspended(opening?.command.asker?.name ?? ''))
        this.cancelUnconfirmed({ owner: 'any', id });
  }

  async #read({ owner, id }: ChatName) {
    this.#deps.link.assertConnected();
    const chat = await this.#records.readChat(id);
    const isTheirs = chat && (owner === 'any' || isOwnedBy(chat, owner));
    if (!isTheirs) throw new Failure('not_found');
    const result = await this.#deps.link.read(toPendingJob(chat));
    return { chat, result, status: statusOf(result, { deadline: chat.deadline, now: this.#deps.now() }) };
  }

  async #cancel(name: ChatName): Promise<void> {
    const { chat, status } = await this.#read(name);
    // An end that was shown stays.
    if (hasEnded.has(status)) return;
    // Also when it was cancelled before: that process may have died before it published the cancel.
    if (await this.#records.cancel(chat)) this.#deps.link.cancel(toPendingJob(chat));
  }

  /** Throws `queue_unavailable` when the store takes too long, and `timeout` where the deadline passes first. */
  #inTime<T>(work: Promise<T>, deadline = Infinity, provider?: ProviderId): Promise<T> {
    const leftMs = deadline - this.#deps.now();
    const code = leftMs > storeTimeoutMs ? 'queue_unavailable' : 'timeout';
    return withTimeout(Math.min(leftMs, storeTimeoutMs), work, () => new Failure(code, { provider }));
  }
}

/** Final statuses other than `cancelled`. */
const hasEnded: ReadonlySet<ChatStatus> = new Set(['completed', 'failed', 'expired']);

/** Makes of what was reserved for a chat's answer what is written, once the chat has ended. */
export const answerSizes: ChatListener = {
  ended: ({ claimed: { answer, current, deadline }, attempt }, outcome) => {
    if (answer === undefined || outcome === undefined) return;
    const result = Buffer.byteLength(encodeStoredResult(outcome, deadline));
    // The record has the last attempt, with those before it.
    const growth = Buffer.byteLength(JSON.stringify(attempt)) - Buffer.byteLength(JSON.stringify(current));
    answer.resize(result + Math.max(0, growth));
  },
};
