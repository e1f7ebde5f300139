import { createHash } from 'node:crypto';
import { Failure } from '../../shared/failures.js';
import type { KeptChat } from '../../shared/protocol/stored-chat.js';
import { writtenVersion } from '../../shared/protocol/version.js';
import { within } from '../../shared/runtime/with-timeout.js';
import type { KeptQuestion, OpenedChat, Question } from './chat-command.js';
import { type CallersKey, isOwnedBy, type KeptRecords } from './chat-records.js';
import { statusOf } from './chat-result.js';
import type { JobRecord } from './jobs/job-results.js';

/** How a question that begins a chat gets in. */
export interface Entry {
  /** Of the job, should the question begin a chat; in milliseconds since the epoch. */
  deadline: number;
  /** Throws when a new job would not be done in time. */
  admit: () => Promise<void>;
}

interface KeptEntryDeps {
  records: KeptRecords;
  /** Throws `queue_unavailable` without a store. */
  recordOf: (chat: KeptChat) => Promise<JobRecord>;
  /** How long the records stay after the deadline, in milliseconds. */
  resultTtlMs: number;
  now: () => number;
}

/** So often a key may turn out to stand for a chat that has failed meanwhile, before its caller is told to try again. */
const mostAttempts = 5;
/** A store that has not answered by then counts as down. */
const openTimeoutMs = 2500;
/** The clocks of two machines may differ by this much: past the deadline by one, the job may be under way by the other. */
export const clockMarginMs = 5000;

/**
 * The chat that a question begins, once it was admitted, or the one that its key stands for. Throws `idempotency_key_reused`
 * when that one is of another request, what `admit` throws, and `timeout` when the deadline passes first.
 */
export function createKeptEntry({ records, recordOf, resultTtlMs, now }: KeptEntryDeps) {
  /** Written down before its key: a key always leads to a chat. */
  const begin = async (question: KeptQuestion, { deadline, admit }: Entry): Promise<KeptChat> => {
    await admit();
    const chat = describe(question, { createdAt: now(), deadline, keptUntil: deadline + resultTtlMs });
    await records.writeChat(chat);
    return chat;
  };
  /** The chat that a key stands for; undefined when another attempt is due. */
  const join = async (question: KeptQuestion, id: string): Promise<OpenedChat | undefined> => {
    const chat = await records.readChat(id);
    if (chat === undefined || !isOwnedBy(chat, question.keeping.owner)) return undefined;
    if (chat.requestHash !== hashOf(question)) throw new Failure('idempotency_key_reused');
    const record = await recordOf(chat);
    if (record.state !== 'settled') return isUnderWay(chat, record) ? { chat, isNew: false } : undefined;
    const { outcome } = record;
    const mayPass = outcome.kind === 'failed' && outcome.retryable;
    return mayPass ? undefined : { chat, isNew: false, outcome };
  };
  const isUnderWay = (chat: KeptChat, record: JobRecord): boolean => {
    // A job that is not there is nowhere being done.
    const marginMs = record.state === 'unknown' ? 0 : clockMarginMs;
    return statusOf(record, { deadline: chat.deadline + marginMs, now: now() }) !== 'expired';
  };
  const openByKey = async (question: KeptQuestion, key: CallersKey, entry: Entry): Promise<OpenedChat> => {
    /** Begun, and certainly not what the key stands for. */
    let unused: KeptChat | undefined;
    try {
      for (let attempt = 0; attempt < mostAttempts; attempt += 1) {
        const id = await records.readPointer(key);
        const joined = id === undefined ? undefined : await join(question, id);
        if (joined) return joined;
        const chat: KeptChat = unused ?? (await begin(question, entry));
        unused = undefined;
        if (await records.point(key, chat, id)) return { chat, isNew: true };
        unused = chat;
      }
      throw new Failure('internal', { retryable: true });
    } finally {
      if (unused) await records.forgetChat(unused).catch(() => undefined);
    }
  };
  const openNow = async (question: KeptQuestion, entry: Entry): Promise<OpenedChat> => {
    const { owner, key } = question.keeping;
    if (key !== undefined) return openByKey(question, { owner: owner.name, key }, entry);
    return { chat: await begin(question, entry), isNew: true };
  };

  return (question: KeptQuestion, entry: Entry): Promise<OpenedChat> => {
    const { provider } = question;
    const leftMs = entry.deadline - now();
    const tooLate = () => new Failure(leftMs > openTimeoutMs ? 'queue_unavailable' : 'timeout', { provider });
    return within(Math.min(leftMs, openTimeoutMs), openNow(question, entry), tooLate);
  };
}

type Times = Pick<KeptChat, 'createdAt' | 'deadline' | 'keptUntil'>;

function describe(question: KeptQuestion, times: Times): KeptChat {
  const { requestId: id, provider, model, keeping } = question;
  const requestHash = hashOf(question);
  return {
    v: writtenVersion,
    id,
    owner: keeping.owner.name,
    ownerId: keeping.owner.id,
    provider,
    ...(model && { model }),
    requestHash,
    ...times,
  };
}

/** Equal for requests that ask the same, however their bodies are written. */
const hashOf = ({ provider, model, turns }: Question): string =>
  createHash('sha256')
    .update(JSON.stringify([provider, model ?? null, turns]))
    .digest('base64url');
