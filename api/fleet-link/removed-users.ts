import { providerIds } from '../../shared/contracts/contract.js';
import { type Cancel, topics } from '../../shared/protocol/messages.js';
import {
  decodeRemovedUsers,
  encodeRemovedUsers,
  removedUsersKey,
} from '../../shared/protocol/removed-users.js';
import { writtenVersion } from '../../shared/protocol/version.js';
import type { RecordStore } from '../../shared/queue/queue-store.js';
import type { Relay } from '../../shared/queue/relay.js';
import type { Log } from '../../shared/runtime/log.js';
import { retry } from '../../shared/runtime/retry.js';

interface RemovedUsersDeps {
  records: Pick<RecordStore, 'read' | 'create' | 'replace'>;
  relay: Pick<Relay, 'publish'>;
  /** Ends the attempts to write the record while the store is down. */
  signal: AbortSignal;
  log: Log;
}

/** How long the record is kept, in milliseconds: no chat takes longer. */
const recordTtlMs = 2 * 3_600_000;

/**
 * Makes the pools end the chats of removed users. A message ends those that run. A record, which workers read every
 * second, ends those that are queued and start later. Every API process does this, so one that lives is enough.
 */
export class RemovedUsers {
  readonly #deps: RemovedUsersDeps;
  #known: ReadonlySet<string> = new Set();

  constructor(deps: RemovedUsersDeps) {
    this.#deps = deps;
  }

  /** Takes the ids of all users who were removed lately; resolves once the new ones are recorded, never rejects. */
  async update(ids: readonly string[]): Promise<void> {
    const users = ids.filter((id) => !this.#known.has(id));
    this.#known = new Set(ids);
    if (users.length === 0) return;
    const { relay, signal, log } = this.#deps;
    const message: Cancel = { v: writtenVersion, jobIds: [], users };
    const published = providerIds.map((id) => relay.publish(topics.cancel(id), message));
    void Promise.all(published).catch((err) => log.debug({ err }, 'removed users not published'));
    await retry(() => this.#record(users), { pauseMs: 500, unref: true, signal }).catch((err) =>
      log.debug({ err }, 'removed users not recorded'),
    );
  }

  async #record(users: readonly string[]): Promise<void> {
    const { records } = this.#deps;
    for (;;) {
      const expected = await records.read(removedUsersKey);
      const recorded = decodeRemovedUsers(expected);
      const lacking = users.filter((id) => !recorded.includes(id));
      if (lacking.length === 0) return;
      const record = { value: encodeRemovedUsers([...recorded, ...lacking]), ttlMs: recordTtlMs };
      const isWritten = await (expected === undefined
        ? records.create(removedUsersKey, record)
        : records.replace(removedUsersKey, { expected, ...record }));
      if (isWritten) return;
    }
  }
}
