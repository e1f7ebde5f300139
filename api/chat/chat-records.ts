import type { UserIdentity } from '../../db/access/users.js';
import { Failure } from '../../shared/failures.js';
import type { Outcome } from '../../shared/protocol/outcome.js';
import {
  chatKey,
  decodeStoredChat,
  decodeStoredResult,
  encodeStoredChat,
  encodeStoredResult,
  idempotencyIndexKey,
  resultKey,
  type StoredChat,
} from '../../shared/protocol/stored-chat.js';
import type { RecordStore } from '../../shared/queue/queue-store.js';
import { refuseNewer } from './jobs/version-guard.js';

/**
 * The records of stored chats as the API writes them; all throw `queue_unavailable` when the store cannot be reached, and
 * those that read what `refuseNewer` throws.
 */
export interface ChatRecords {
  writeChat(chat: StoredChat): Promise<void>;
  readChat(id: string): Promise<StoredChat | undefined>;
  /** For a chat that nobody has heard of. */
  forgetChat(chat: StoredChat): Promise<void>;
  /** Id of the chat that a key stands for. */
  readKeyIndex(key: IdempotencyKey): Promise<string | undefined>;
  /** Has the key stand for the chat; false when it stands for another one than `instead`, which was read before. */
  point(key: IdempotencyKey, chat: StoredChat, instead: string | undefined): Promise<boolean>;
  /** Writes down that the chat was cancelled; false when it had ended otherwise before. */
  cancel(chat: StoredChat): Promise<boolean>;
}

/** An `Idempotency-Key`, and the name of the user whose it is. A name may be given again: see `isOwnedBy`. */
export interface IdempotencyKey {
  readonly owner: string;
  readonly key: string;
}

/**
 * Whether the chat is the user's, and not that of an earlier user of the same name. One that the release before has recorded
 * names no id: it is whose name it was at that time.
 */
export const isOwnedBy = ({ owner, ownerId, createdAt }: StoredChat, user: UserIdentity): boolean =>
  ownerId === undefined ? owner === user.name && createdAt >= user.createdAt.getTime() : ownerId === user.id;

/** Everything about one chat ends together, at its `keptUntil`. */
export function createChatRecords(records: RecordStore, now: () => number): ChatRecords {
  const ttlOf = ({ keptUntil }: StoredChat) => Math.max(1, Math.ceil(keptUntil - now()));
  return {
    writeChat: async (chat) => {
      await asked(records.create(chatKey(chat.id), { value: encodeStoredChat(chat), ttlMs: ttlOf(chat) }));
    },
    readChat: async (id) => {
      const text = await asked(records.read(chatKey(id)));
      refuseNewer(text);
      return text === undefined ? undefined : decodeStoredChat(text);
    },
    forgetChat: async (chat) => {
      const value = encodeStoredChat(chat);
      await asked(records.replace(chatKey(chat.id), { expected: value, value, ttlMs: 1 }));
    },
    readKeyIndex: ({ owner, key }) => asked(records.read(idempotencyIndexKey(owner, key))),
    point: ({ owner, key }, chat, instead) => {
      const pointer = idempotencyIndexKey(owner, key);
      const record = { value: chat.id, ttlMs: ttlOf(chat) };
      const pointing =
        instead === undefined
          ? records.create(pointer, record)
          : records.replace(pointer, { ...record, expected: instead });
      return asked(pointing);
    },
    cancel: async (chat) => {
      const value = encodeStoredResult(cancelled, now());
      const key = resultKey(chat.id);
      if (await asked(records.create(key, { value, ttlMs: ttlOf(chat) }))) return true;
      const earlier = await asked(records.read(key));
      refuseNewer(earlier);
      return earlier !== undefined && decodeStoredResult(earlier).outcome.kind === 'cancelled';
    },
  };
}

const cancelled: Outcome = { kind: 'cancelled', queueMs: 0, providerMs: 0 };

/** Whatever goes wrong between here and the store is one failure to a caller. */
async function asked<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    throw new Failure('queue_unavailable', { cause });
  }
}
