import { Failure } from '../../shared/failures.js';
import type { Attempt } from '../../shared/protocol/attempts.js';
import { digestOf } from '../../shared/protocol/chat-content.js';
import {
  currentOf,
  encodeStoredChat,
  idempotencyIndexKey,
  type StoredChat,
} from '../../shared/protocol/stored-chat.js';
import { writtenVersion } from '../../shared/protocol/version.js';
import type { JobResult, PendingJob } from '../fleet-link/chat-receiver.js';
import type { FleetLink } from '../fleet-link/fleet-link.js';
import {
  type ClaimedChat,
  clockMarginMs,
  type ResolvedChat,
  type StoredChatCommand,
} from './chat-command.js';
import { type ChatRecords, isOwnedBy } from './chat-records.js';
import { statusOf } from './chat-result.js';
import type { Reservation, StoredAnswers } from './stored-answers.js';

/** The chat of an `Idempotency-Key`. */
export interface FoundChat {
  /** The chat that the request joins; absent when a new one has to be opened. */
  readonly joined?: ResolvedChat;
  /** Id of the chat that the key has stood for, and that is not joined. */
  readonly previousId?: string | undefined;
}

/** A new chat that was admitted. */
export interface NewChat extends Pick<FoundChat, 'previousId'> {
  /** The deadline of its job, in milliseconds since the epoch. */
  readonly deadline: number;
  readonly current: Attempt;
}

interface IdempotentEntryDeps {
  records: ChatRecords;
  link: Pick<FleetLink, 'read'>;
  /** How long the records stay after the deadline, in milliseconds. */
  resultTtlMs: number;
  answers: Pick<StoredAnswers, 'reserve'>;
  /** The clock of the deadlines, in milliseconds since the epoch: the store's. */
  now: () => number;
}

/** A token is about four bytes. */
const bytesPerToken = 4;
/** The room that is reserved for an answer while its chat runs. */
const usualBytes = 65_536;
/** Attempts to claim a key whose chat keeps failing concurrently, before giving up. */
const maxAttempts = 5;

/** Creates the stored chats of commands, and joins them with those that send the same `Idempotency-Key`. */
export class IdempotentEntry {
  constructor(private readonly deps: IdempotentEntryDeps) {}

  /** The chat of the command's key; throws `idempotency_key_reused` when that belongs to another request. */
  async find(command: StoredChatCommand): Promise<FoundChat> {
    const { owner, key } = command.storeOptions;
    if (key === undefined) return {};
    const previousId = await this.deps.records.readKeyIndex(idempotencyIndexKey(owner.name, key));
    const joined = previousId === undefined ? undefined : await this.#join(command, previousId);
    return joined ? { joined } : { previousId };
  }

  /** Stores a new chat for the key, or joins one that was faster. Throws as `find`, and `rate_limited` without room. */
  async open(command: StoredChatCommand, newChat: NewChat): Promise<ResolvedChat> {
    const { records } = this.deps;
    const { owner, key } = command.storeOptions;
    const { chat, answer } = await this.#create(command, newChat);
    const opened = { chat: { ...toClaimedChat(chat), answer } };
    if (key === undefined) return opened;
    const indexKey = idempotencyIndexKey(owner.name, key);
    let isClaimed = false;
    try {
      for (let attempt = 0, expected = newChat.previousId; attempt < maxAttempts; attempt += 1) {
        isClaimed = await records.writeKeyIndex(indexKey, chat, expected);
        if (isClaimed) return opened;
        const found = await this.find(command);
        if (found.joined) return found.joined;
        expected = found.previousId;
      }
      throw new Failure('internal', { retryable: true });
    } finally {
      if (!isClaimed) {
        answer.release();
        await records.deleteChat(chat).catch(() => undefined);
      }
    }
  }

  /** The chat of this id; undefined when another attempt is due. Its answer's room is held where it was created. */
  async #join(command: StoredChatCommand, id: string): Promise<ResolvedChat | undefined> {
    const { records, link } = this.deps;
    const chat = await records.readChat(id);
    if (chat === undefined || !isOwnedBy(chat, command.storeOptions.owner)) return undefined;
    if (chat.requestHash !== (await digestOf(command.written, command)))
      throw new Failure('idempotency_key_reused');
    const result = await link.read(toPendingJob(chat));
    return this.#isJoinable(chat, result) ? { chat: toClaimedChat(chat), result } : undefined;
  }

  #isJoinable(chat: StoredChat, result: JobResult): boolean {
    if (result.state === 'settled') return result.outcome.kind !== 'failed' || !result.outcome.retryable;
    // A job that does not exist runs nowhere.
    const marginMs = result.state === 'unknown' ? 0 : clockMarginMs;
    const options = { deadline: chat.deadline + marginMs, now: this.deps.now() };
    return statusOf(result, options) !== 'expired';
  }

  /** Recorded before its key, so that a key always leads to a chat. */
  async #create(command: StoredChatCommand, { deadline, current }: NewChat) {
    const { records, resultTtlMs, now } = this.deps;
    const { requestId: id, provider, model, storeOptions } = command;
    const chat: StoredChat = {
      v: writtenVersion,
      id,
      provider,
      model,
      requestHash: await digestOf(command.written, command),
      owner: storeOptions.owner.name,
      ownerId: storeOptions.owner.id,
      createdAt: now(),
      deadline,
      keptUntil: deadline + resultTtlMs,
      current: current.fallback || current.earlier ? current : undefined,
      parts: command.written.hasParts || undefined,
      changes: command.changes?.length ? [...command.changes] : undefined,
    };
    const answer = this.#reserveAnswer(command, chat);
    // If the add of the record was not answered, the record may exist nevertheless; it expires by itself.
    await records.writeChat(chat).catch((error: unknown) => {
      answer.release();
      throw error;
    });
    return { chat, answer };
  }

  /** Room for an answer of the usual length, until it is known: models may write a hundred times as much. */
  #reserveAnswer({ parameters = {}, storeOptions }: StoredChatCommand, chat: StoredChat): Reservation {
    const { maxOutputTokens = Number.POSITIVE_INFINITY } = parameters;
    return this.deps.answers.reserve({
      user: storeOptions.owner.id,
      bytes: Math.min(maxOutputTokens * bytesPerToken, usualBytes),
      besideBytes: Buffer.byteLength(encodeStoredChat(chat)),
      keptUntil: chat.keptUntil,
    });
  }
}

/** The stored chat, for requests that are attached to it. */
export const toClaimedChat = (chat: StoredChat): ClaimedChat => ({
  id: chat.id,
  deadline: chat.deadline,
  expiresAt: chat.keptUntil,
  current: currentOf(chat),
});

/** The job of a stored chat. */
export const toPendingJob = (chat: StoredChat): PendingJob => ({
  ...currentOf(chat),
  jobId: chat.id,
  isStored: true,
});
