import { describe, expect, it, vi } from 'vitest';
import { RemovedUsers } from '../../../api/fleet-link/connection.js';
import { providerIds } from '../../../shared/contracts/contract.js';
import { decodeRemovedUsers, removedUsersKey, topics } from '../../../shared/protocol/messages.js';
import type { RecordStore } from '../../../shared/queue/queue-store.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { createRecordingRelay } from '../../support/recording-relay.js';

function start() {
  const relay = createRecordingRelay();
  let recorded: string | undefined;
  const records: Pick<RecordStore, 'read' | 'create' | 'replace'> = {
    read: async () => recorded,
    create: async (key, { value }) => {
      expect(key).toBe(removedUsersKey);
      if (recorded !== undefined) return false;
      recorded = value;
      return true;
    },
    replace: async (_key, { expected, value }) => {
      if (recorded !== expected) return false;
      recorded = value;
      return true;
    },
  };
  const { log } = createRecordingLog();
  const open = () => new RemovedUsers({ records, relay, signal: new AbortController().signal, log });
  return { relay, records, open, recorded: () => decodeRemovedUsers(recorded) };
}

const cancelsOf = (users: string[]) =>
  providerIds.map((id) => ({ topic: topics.cancel(id), message: { v: 1, jobIds: [], users } }));

describe('RemovedUsers', () => {
  it('tells every pool of each user once, and records them beside what others have recorded', async () => {
    const { relay, open, recorded } = start();
    const [one, two] = [open(), open()];
    await one.update(['a']);
    await one.update(['a']);
    expect(relay.published).toEqual(cancelsOf(['a']));
    await Promise.all([one.update(['a', 'b']), two.update(['a', 'c'])]);
    expect(recorded().toSorted()).toEqual(['a', 'b', 'c']);
  });

  it('records them as soon as the store is back', async () => {
    const { relay, records, open, recorded } = start();
    vi.spyOn(records, 'read').mockRejectedValueOnce(new Error('away'));
    vi.spyOn(relay, 'publish').mockRejectedValueOnce(new Error('away'));
    await open().update(['a']);
    expect(recorded()).toEqual(['a']);
  });

  it('keeps the last thousand', async () => {
    const { open, recorded } = start();
    await open().update(Array.from({ length: 1001 }, (_, n) => `user-${n}`));
    expect(recorded()).toHaveLength(1000);
    expect(recorded().at(-1)).toBe('user-1000');
  });
});
