import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { StoredChatCommand } from '../../api/chat/chat-command.js';
import type { ChatRecords } from '../../api/chat/chat-records.js';
import { IdempotentEntry } from '../../api/chat/idempotent-entry.js';
import type { Turn } from '../../shared/conversation.js';
import {
  cancelSchema,
  chatJobSchema,
  processHeartbeatSchema,
  rateLimitSchema,
  resultMessageSchema,
} from '../../shared/protocol/messages.js';
import { decodeOutcome } from '../../shared/protocol/outcome.js';
import { decodeStoredChat, decodeStoredResult, type StoredChat } from '../../shared/protocol/stored-chat.js';
import { writeContent } from '../support/attached.js';
import { userNamed } from '../support/identities.js';

// What the release before this one has written and published (`record.ts` in its checkout): all of it has to be read,
// to the last field.

type Json = Record<string, unknown>;

function recorded<T>(name: string): T[] {
  const all: T[] = JSON.parse(readFileSync(`test/compatibility/recorded/${name}.json`, 'utf8'));
  expect(all).not.toEqual([]);
  return all;
}

const without = ({ v: _, ...rest }: Json): Json => rest;
const parsed = (text: unknown): Json => JSON.parse(String(text));

describe('what the release before has written', () => {
  const jobs = recorded<{ data: Json; returnvalue: string | null }>('jobs');

  it.each(jobs)('is read as a job: $data.model of $data.provider', ({ data }) => {
    expect(without(chatJobSchema.parse(data))).toEqual(without({ ...data, turns: parsed(data.turns) }));
  });

  it.each(jobs.filter(({ returnvalue }) => returnvalue !== null))(
    'is read as an outcome: $returnvalue',
    (job) => {
      expect(decodeOutcome(job.returnvalue)).toEqual(without(parsed(job.returnvalue)));
    },
  );

  it('is read as the record of a stored chat and as that of its outcome', () => {
    const records = recorded<{ key: string; value: string }>('records');
    const under = (prefix: string) => records.filter(({ key }) => key.startsWith(prefix));
    for (const { value } of under('chat.'))
      expect(without(decodeStoredChat(value))).toEqual(without(parsed(value)));
    for (const { value } of under('outcome.')) {
      const { at, outcome } = parsed(value);
      expect(without(decodeStoredResult(value))).toEqual({ at, outcome: without(parsed(outcome)) });
    }
    expect(['chat.', 'outcome.', 'key.'].map((prefix) => under(prefix).length)).toEqual([2, 2, 1]);
  });
});

describe('a request that the release before has stored', () => {
  it('has the same hash when it comes again, and no other version', async () => {
    const written: StoredChat[] = [];
    const records: Pick<ChatRecords, 'writeChat'> = { writeChat: async (chat) => void written.push(chat) };
    const entry = new IdempotentEntry({
      records: records as ChatRecords,
      link: { read: async () => ({ state: 'unknown' }) },
      ...{ resultTtlMs: 1, now: () => 1 },
      answers: { reserve: () => ({ release: () => {}, resize: () => {} }) },
    });
    const turns: Turn[] = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hello \u0000 🎉' },
    ];
    const again = (own: Partial<StoredChatCommand>) => ({
      ...{ requestId: 'id', user: 'me', provider: 'bedrock' as const, model: 'sim-echo', ...own },
      ...{ written: writeContent({ turns, parameters: own.parameters }), unfitFor: [] },
      bytes: 0,
      signal: new AbortController().signal,
      storeOptions: { owner: userNamed('me'), key: undefined, isAsync: true, onResolved: () => {} },
    });
    const opened = { deadline: 1, current: { provider: 'bedrock' } } as const;
    await entry.open(again({}), opened);
    await entry.open(again({ parameters: { tools: [{ name: 'f' }] } }), opened);
    const chats = recorded<{ key: string; value: string }>('records').filter(({ key }) =>
      key.startsWith('chat.'),
    );
    const before = chats
      .map(({ value }) => decodeStoredChat(value))
      .find(({ provider }) => provider === 'bedrock');
    expect(written[0]).toMatchObject({ requestHash: before?.requestHash, parts: undefined });
    expect(written[1]).toMatchObject({ parts: true });
    expect(written[1]?.requestHash).not.toBe(before?.requestHash);
  });
});

describe('what the release before has published', () => {
  const schemas = {
    reply: resultMessageSchema,
    cancel: cancelSchema,
    limit: rateLimitSchema,
    processes: processHeartbeatSchema,
  };
  const messages = recorded<{ topic: string; message: Json }>('messages');
  const kindOf = (topic: string) => topic.split('.')[0] as keyof typeof schemas;

  it('is of every kind', () => {
    expect(new Set(messages.map(({ topic }) => kindOf(topic)))).toEqual(new Set(Object.keys(schemas)));
  });

  it.each(messages)('is read: $topic $message', ({ topic, message }) => {
    expect(schemas[kindOf(topic)].parse(message)).toEqual(message);
  });
});
