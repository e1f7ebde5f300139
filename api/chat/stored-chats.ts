import { setTimeout as delay } from 'node:timers/promises';
import type { UserIdentity } from '../../db/access/users.js';
import type { ChatStatus } from '../../shared/contract.js';
import { Failure } from '../../shared/failures.js';
import type { StoredChat } from '../../shared/protocol/stored-chat.js';
import type { RecordStore } from '../../shared/queue/queue-store.js';
import { withTimeout } from '../../shared/runtime/with-timeout.js';
import type { ResolvedChat, StoredChatCommand } from './chat-command.js';
import { createChatRecords, isOwnedBy } from './chat-records.js';
import { statusOf } from './chat-result.js';
import { createIdempotentEntry, type Entry } from './idempotent-entry.js';
import type { JobClient } from './jobs/job-client.js';
import type { JobResult } from './jobs/job-results.js';

/** The rules by which stored chats are begun, joined, read and cancelled; all throw `queue_unavailable` without a store. */
export interface StoredChats {
  /**
   * The chat that the command begins, once it was admitted, or the one that its key stands for. Throws
   * `idempotency_key_reused` when that one is of another request, what `admit` throws, and `timeout` when the deadline
   * passes first.
   */
  open(command: StoredChatCommand, entry: Entry): Promise<ResolvedChat>;
  /** The chat and what has become of it; throws `not_found` unless it is the owner's. */
  read(name: ChatName): Promise<{ chat: StoredChat; record: JobResult; status: ChatStatus }>;
  /** Cancels the chat unless it has ended; throws `not_found` unless it is the owner's. */
  cancel(name: ChatName): Promise<void>;
  /**
   * For a chat that was refused although the queue may have its job: cancels it as soon as the store allows, within half a
   * minute. Begins to, and never throws.
   */
  abandon(name: ChatName): void;
}

interface ChatName {
  owner: UserIdentity;
  id: string;
}

interface StoredChatsDeps {
  records: RecordStore;
  link: () => JobClient | undefined;
  /** How long the records stay after the deadline, in milliseconds. */
  resultTtlMs: number;
  /** The clock of the deadlines, in milliseconds since the epoch: the store's. */
  now?: () => number;
}

/** A store that has not answered by then counts as down. */
const answerTimeoutMs = 2500;
/** Between the attempts to cancel a chat that was refused: many may be refused while the store is away. */
const pausesMs = [1000, 2000, 4000, 8000, 16_000];

export function createStoredChats(deps: StoredChatsDeps): StoredChats {
  const { link, resultTtlMs, now = Date.now } = deps;
  const records = createChatRecords(deps.records, now);

  const find = async ({ owner, id }: ChatName): Promise<StoredChat> => {
    const chat = await records.readChat(id);
    if (chat === undefined || !isOwnedBy(chat, owner)) throw new Failure('not_found');
    return chat;
  };
  const read = async (name: ChatName) => {
    const open = connected(link);
    const chat = await find(name);
    const record = await recordOf(open, chat);
    return { chat, record, status: statusOf(record, { deadline: chat.deadline, now: now() }) };
  };
  const cancel = async (name: ChatName) => {
    const { chat, status } = await read(name);
    // What it has been shown as, it stays.
    if (hasEnded.has(status)) return;
    // Told again when it was cancelled before: whoever did that may have died before anybody heard of it.
    if (await records.cancel(chat)) connected(link).cancelStored({ jobId: chat.id, provider: chat.provider });
  };

  return {
    open: createIdempotentEntry({
      records,
      recordOf: (chat) => recordOf(connected(link), chat),
      resultTtlMs,
      now,
    }),
    read: (name) => inTime(read(name)),
    cancel: (name) => inTime(cancel(name)),
    abandon: (name) => void retryWhileDown(() => cancel(name)),
  };
}

/** Otherwise than cancelled. */
const hasEnded: ReadonlySet<ChatStatus> = new Set(['completed', 'failed', 'expired']);

function connected(link: () => JobClient | undefined): JobClient {
  const open = link();
  if (open === undefined) throw new Failure('queue_unavailable');
  return open;
}

const inTime = <T>(work: Promise<T>): Promise<T> =>
  withTimeout(answerTimeoutMs, work, () => new Failure('queue_unavailable'));

async function retryWhileDown(work: () => Promise<void>): Promise<void> {
  for (const pauseMs of [...pausesMs, undefined]) {
    const isDone = await inTime(work()).then(
      () => true,
      () => false,
    );
    if (isDone || pauseMs === undefined) return;
    await delay(pauseMs, undefined, { ref: false });
  }
}

async function recordOf(link: JobClient, { id, provider }: StoredChat): Promise<JobResult> {
  try {
    return await link.read({ jobId: id, provider, isStored: true });
  } catch (cause) {
    throw cause instanceof Failure ? cause : new Failure('queue_unavailable', { cause });
  }
}
