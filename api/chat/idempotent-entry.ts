import { createHash } from 'node:crypto';
import { Failure } from '../../shared/failures.js';
import type { StoredChat } from '../../shared/protocol/stored-chat.js';
import { writtenVersion } from '../../shared/protocol/version.js';
import { withTimeout } from '../../shared/runtime/with-timeout.js';
import type { ChatCommand, ResolvedChat, StoredChatCommand } from './chat-command.js';
import { type ChatRecords, type IdempotencyKey, isOwnedBy } from './chat-records.js';
import { statusOf } from './chat-result.js';
import type { JobResult } from './jobs/job-results.js';

/** How a command that begins a chat gets in. */
export interface Entry {
  /** Of the job, should the command begin a chat; in milliseconds since the epoch. */
  deadline: number;
  /** Throws when a new job would not be done in time. */
  admit: () => Promise<void>;
}

interface IdempotentEntryDeps {
  records: ChatRecords;
  /** Throws `queue_unavailable` without a store. */
  recordOf: (chat: StoredChat) => Promise<JobResult>;
  /** How long the records stay after the deadline, in milliseconds. */
  resultTtlMs: number;
  now: () => number;
}

/** So often a key may turn out to stand for a chat that has failed meanwhile, before its caller is told to try again. */
const maxAttempts = 5;
/** A store that has not answered by then counts as down. */
const openTimeoutMs = 2500;
/** The clocks of two machines may differ by this much: past the deadline by one, the job may be under way by the other. */
export const clockMarginMs = 5000;

/**
 * The chat that a command begins, once it was admitted, or the one that its key stands for. Throws `idempotency_key_reused`
 * when that one is of another request, what `admit` throws, and `timeout` when the deadline passes first.
 */
export function createIdempotentEntry({ records, recordOf, resultTtlMs, now }: IdempotentEntryDeps) {
  /** Written down before its key: a key always leads to a chat. */
  const begin = async (command: StoredChatCommand, { deadline, admit }: Entry): Promise<StoredChat> => {
    await admit();
    const chat = describe(command, { createdAt: now(), deadline, keptUntil: deadline + resultTtlMs });
    await records.writeChat(chat);
    return chat;
  };
  /** The chat that a key stands for; undefined when another attempt is due. */
  const join = async (command: StoredChatCommand, id: string): Promise<ResolvedChat | undefined> => {
    const chat = await records.readChat(id);
    if (chat === undefined || !isOwnedBy(chat, command.storeOptions.owner)) return undefined;
    if (chat.requestHash !== hashOf(command)) throw new Failure('idempotency_key_reused');
    const record = await recordOf(chat);
    if (record.state !== 'settled') return isUnderWay(chat, record) ? { chat, isNew: false } : undefined;
    const { outcome } = record;
    const mayPass = outcome.kind === 'failed' && outcome.retryable;
    return mayPass ? undefined : { chat, isNew: false, outcome };
  };
  const isUnderWay = (chat: StoredChat, record: JobResult): boolean => {
    // A job that is not there is nowhere being done.
    const marginMs = record.state === 'unknown' ? 0 : clockMarginMs;
    return statusOf(record, { deadline: chat.deadline + marginMs, now: now() }) !== 'expired';
  };
  const resolveByKey = async (
    command: StoredChatCommand,
    key: IdempotencyKey,
    entry: Entry,
  ): Promise<ResolvedChat> => {
    /** Begun, and certainly not what the key stands for. */
    let unused: StoredChat | undefined;
    try {
      for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
        const id = await records.readKeyIndex(key);
        const joined = id === undefined ? undefined : await join(command, id);
        if (joined) return joined;
        const chat: StoredChat = unused ?? (await begin(command, entry));
        unused = undefined;
        if (await records.point(key, chat, id)) return { chat, isNew: true };
        unused = chat;
      }
      throw new Failure('internal', { retryable: true });
    } finally {
      if (unused) await records.forgetChat(unused).catch(() => undefined);
    }
  };
  const resolveNow = async (command: StoredChatCommand, entry: Entry): Promise<ResolvedChat> => {
    const { owner, key } = command.storeOptions;
    if (key !== undefined) return resolveByKey(command, { owner: owner.name, key }, entry);
    return { chat: await begin(command, entry), isNew: true };
  };

  return (command: StoredChatCommand, entry: Entry): Promise<ResolvedChat> => {
    const { provider } = command;
    const leftMs = entry.deadline - now();
    const timeoutFailure = () =>
      new Failure(leftMs > openTimeoutMs ? 'queue_unavailable' : 'timeout', { provider });
    return withTimeout(Math.min(leftMs, openTimeoutMs), resolveNow(command, entry), timeoutFailure);
  };
}

type Times = Pick<StoredChat, 'createdAt' | 'deadline' | 'keptUntil'>;

function describe(command: StoredChatCommand, times: Times): StoredChat {
  const { requestId: id, provider, model, storeOptions } = command;
  const requestHash = hashOf(command);
  return {
    v: writtenVersion,
    id,
    owner: storeOptions.owner.name,
    ownerId: storeOptions.owner.id,
    provider,
    ...(model && { model }),
    requestHash,
    ...times,
  };
}

/** Equal for requests that ask the same, however their bodies are written. */
const hashOf = ({ provider, model, turns }: ChatCommand): string =>
  createHash('sha256')
    .update(JSON.stringify([provider, model ?? null, turns]))
    .digest('base64url');
