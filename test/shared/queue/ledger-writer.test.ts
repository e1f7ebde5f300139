import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { decodeEntry, decodeOrigin, type NewEntry } from '../../../shared/protocol/entries.js';
import { LedgerWriter, lostEntries } from '../../../shared/queue/ledger-writer.js';
import { OutboxFull } from '../../../shared/queue/queue-store.js';
import { nameOfTest } from '../../support/entries.js';
import { createRecordingLog } from '../../support/recording-log.js';

let appended: (string | undefined)[][];
let dropped: number;
let answer: () => Promise<void>;
let writer: LedgerWriter;
beforeEach(() => {
  vi.useFakeTimers();
  [appended, dropped, answer] = [[], 0, async () => undefined];
  const append = async (entries: readonly string[]) => {
    appended.push(entries.map((entry) => decodeEntry(entry)?.chat));
    await answer();
  };
  const inc = (_: object, by = 1) => {
    dropped += by;
  };
  const metrics = { ledgerDropped: { inc } };
  writer = new LedgerWriter({ outbox: { append }, metrics, log: createRecordingLog().log });
});
afterEach(() => void vi.useRealTimers());
const entry = (chat: string): NewEntry => ({
  ...{ kind: 'left', chat, origin: nameOfTest(), code: 'timeout', addedAt: 1, endedAt: 2 },
});

describe('entries of the ledger', () => {
  it('come while others are appended -> those go together, and each is awaited', async () => {
    const gate = Promise.withResolvers<void>();
    answer = () => gate.promise;
    const first = writer.append(entry('a'));
    await vi.advanceTimersByTimeAsync(0);
    const others = [writer.append(entry('b')), writer.append(entry('c'), entry('d'))];
    const order: string[] = [];
    void first.then(() => order.push('first'));
    const flushed = writer.flush().then(() => order.push('all'));
    gate.resolve();
    await Promise.all([...others, flushed]);
    expect(appended).toEqual([['a'], ['b', 'c', 'd']]);
    expect(order).toEqual(['first', 'all']);
  });

  it('meet a store that is away -> are tried for ten seconds, and then counted', async () => {
    answer = () => Promise.reject(new Error('away'));
    const appending = writer.append(entry('a'), entry('b'));
    await vi.advanceTimersByTimeAsync(9000);
    expect(dropped).toBe(0);
    expect(appended.length).toBeGreaterThan(50);
    await vi.advanceTimersByTimeAsync(2000);
    await appending;
    expect(dropped).toBe(2);
    answer = async () => undefined;
    await writer.append(entry('c'));
    expect(appended.at(-1)).toEqual(['c']);
  });

  it('meet a full outbox -> are counted at once, so that no job waits for it', async () => {
    answer = () => Promise.reject(new OutboxFull('full'));
    await writer.append(entry('a'));
    expect([appended, dropped]).toEqual([[['a']], 1]);
  });
});

describe('lost runs', () => {
  const chat = 'f8c2a3d4-0000-4000-8000-000000000001';
  const name = nameOfTest({ name: 'anna' });
  const job = { id: `${chat}-2`, name, addedAt: 5, lost: 2 };

  it('of jobs -> an entry each, with the chat, the attempt and who asked', () => {
    const end = { code: 'timeout', endedAt: 9 };
    expect(lostEntries('bedrock', [job, { ...job, lost: 0 }], end)).toEqual([
      {
        ...{ kind: 'lost', chat, attempt: 2, origin: name, addedAt: 5, provider: 'bedrock', runs: 2 },
        end: { ...end, provider: 'bedrock' },
      },
    ]);
  });

  it('of a job that an older release has added -> nobody', () => {
    const [lost] = lostEntries('openai', [{ ...job, id: chat, name: 'chat' }]);
    expect(lost).toMatchObject({ chat, attempt: 1 });
    expect(decodeOrigin(lost?.origin ?? '')).toMatchObject({ user: '', provider: 'openai' });
  });
});
