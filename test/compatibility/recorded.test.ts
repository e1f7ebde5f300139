import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  cancelSchema,
  chatJobSchema,
  processHeartbeatSchema,
  rateLimitSchema,
  resultMessageSchema,
} from '../../shared/protocol/messages.js';
import { decodeOutcome } from '../../shared/protocol/outcome.js';
import { decodeStoredChat, decodeStoredResult } from '../../shared/protocol/stored-chat.js';

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
