import type { UserIdentity } from '../../db/access/users.js';
import { cancelledOutcome } from '../../shared/protocol/outcome.js';
import {
  chatKey,
  decodeStoredChat,
  decodeStoredResult,
  encodeStoredChat,
  encodeStoredResult,
  resultKey,
  type StoredChat,
} from '../../shared/protocol/stored-chat.js';
import type { RecordStore } from '../../shared/queue/queue-store.js';
import { orUnavailable, refuseNewer } from '../fleet-link/job-records.js';

/** Whether the chat is the user's, and not that of an earlier user of the same name. */
export const isOwnedBy = ({ ownerId }: StoredChat, user: UserIdentity): boolean => ownerId === user.id;

/**
 * The records of stored chats as the API writes them; those of one chat expire together, at its `keptUntil`. Every
 * method throws `queue_unavailable` when the store cannot be reached; those that read also throw as `refuseNewer`.
 */
export class ChatRecords {
  readonly #records: RecordStore;
  readonly #now: () => number;

  /** `now` is the store's clock, in milliseconds since the epoch. */
  constructor(records: RecordStore, now: () => number) {
    this.#records = records;
    this.#now = now;
  }

  async writeChat(chat: StoredChat): Promise<void> {
    const record = { value: encodeStoredChat(chat), ttlMs: this.#ttlMsOf(chat) };
    await orUnavailable(this.#records.create(chatKey(chat.id), record));
  }

  async readChat(id: string): Promise<StoredChat | undefined> {
    const text = await orUnavailable(this.#records.read(chatKey(id)));
    refuseNewer(text);
    return text === undefined ? undefined : decodeStoredChat(text);
  }

  /** For a chat whose id was not sent to a caller. */
  async deleteChat(chat: StoredChat): Promise<void> {
    const value = encodeStoredChat(chat);
    await orUnavailable(this.#records.replace(chatKey(chat.id), { expected: value, value, ttlMs: 1 }));
  }

  /** Id of the chat that an `Idempotency-Key` stands for; `indexKey` is that of `idempotencyIndexKey`. */
  readKeyIndex(indexKey: string): Promise<string | undefined> {
    return orUnavailable(this.#records.read(indexKey));
  }

  /** Makes the key stand for the chat; false when it no longer stands for `previousId`, which was read before. */
  writeKeyIndex(indexKey: string, chat: StoredChat, previousId: string | undefined): Promise<boolean> {
    const record = { value: chat.id, ttlMs: this.#ttlMsOf(chat) };
    return orUnavailable(
      previousId === undefined
        ? this.#records.create(indexKey, record)
        : this.#records.replace(indexKey, { ...record, expected: previousId }),
    );
  }

  /** Records that the chat was cancelled; false when it had ended otherwise before. */
  async cancel(chat: StoredChat): Promise<boolean> {
    const key = resultKey(chat.id);
    const value = encodeStoredResult(cancelledOutcome, this.#now());
    if (await orUnavailable(this.#records.create(key, { value, ttlMs: this.#ttlMsOf(chat) }))) return true;
    const earlier = await orUnavailable(this.#records.read(key));
    refuseNewer(earlier);
    return earlier !== undefined && decodeStoredResult(earlier).outcome.kind === 'cancelled';
  }

  #ttlMsOf({ keptUntil }: StoredChat): number {
    return Math.max(1, Math.ceil(keptUntil - this.#now()));
  }
}
