import { beforeEach, describe, expect, it } from 'vitest';
import { type ResultMessage, resultMessageSchema } from '../../../shared/protocol/messages.js';
import { decodeOutcome, encodeOutcome, type Outcome } from '../../../shared/protocol/outcome.js';
import { ReplyPublisher } from '../../../workers/job/reply-publisher.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { createRecordingRelay, type RecordingRelay } from '../../support/recording-relay.js';
import { takeJob } from '../../support/running-jobs.js';
import { unavailableResults } from '../../support/stored-results.js';

let relay: RecordingRelay;
let logged: ReturnType<typeof createRecordingLog>;
let replies: ReplyPublisher;

beforeEach(() => {
  relay = createRecordingRelay();
  logged = createRecordingLog();
  replies = new ReplyPublisher({ relay, storedResults: unavailableResults(logged.log), log: logged.log });
});

const job = (id: string, replyTo = 'node') => takeJob({ id, data: { replyTo } });
const storedJob = (id: string, replyTo = 'node') =>
  takeJob({ id, data: { replyTo, keptUntil: Date.now() + 60_000 } });
const stored = { isStored: true };
const reply = (text: string): Outcome => ({ kind: 'ok', text, model: 'm', queueMs: 1, providerMs: 2 });
/** The messages of a topic, as they arrive. */
const publishedOn = (topic: string): ResultMessage['settled'] =>
  relay.published
    .filter((published) => published.topic === topic)
    .flatMap(({ message }) => resultMessageSchema.parse(JSON.parse(JSON.stringify(message))).settled);

describe('publish', () => {
  it('publishes the outcome to the API process that waits, without being flushed', async () => {
    replies.publish(job('one'), encodeOutcome(reply('canary')));
    await relay.publishedAtLeast(1);
    const [result] = publishedOn('reply.node');
    expect(result?.jobId).toBe('one');
    expect(decodeOutcome(result?.outcome)).toEqual(reply('canary'));
    expect(logged.text()).not.toContain('canary');
  });

  it('publishes what ends at once in one message to each process, and what ends later in another', async () => {
    for (const id of ['one', 'two', 'three']) replies.publish(job(id), encodeOutcome(reply(id)));
    replies.publish(job('other', 'elsewhere'), encodeOutcome(reply('other')));
    await relay.publishedAtLeast(2);
    expect(relay.published.map(({ topic }) => topic)).toEqual(['reply.node', 'reply.elsewhere']);
    expect(publishedOn('reply.node').map(({ jobId }) => jobId)).toEqual(['one', 'two', 'three']);
    expect(publishedOn('reply.elsewhere').map(({ jobId }) => jobId)).toEqual(['other']);
    replies.publish(job('four'), encodeOutcome(reply('four')));
    await relay.publishedAtLeast(3);
    expect(publishedOn('reply.node').map(({ jobId }) => jobId)).toEqual(['one', 'two', 'three', 'four']);
  });

  it.each(['a', '\u0001', '"', '\\', '語', '🎉'])(
    'publishes every job, however long a text of %j',
    async (character) => {
      const lengths = [...Array<number>(50).fill(5000), 10_000, 39_000, 79_000, 80_000, 100_000, 2_000_000];
      const ids = lengths.map((length, n) => `${n}-${length}`);
      for (const [n, length] of lengths.entries()) {
        replies.publish(job(ids[n] ?? ''), encodeOutcome(reply(character.repeat(length))), stored);
      }
      await replies.flush();
      const published = publishedOn('reply.node');
      expect(published.map(({ jobId }) => jobId)).toEqual(ids);
      expect(decodeOutcome(published[0]?.outcome)).toEqual(reply(character.repeat(5000)));
      expect(published.at(-1)).not.toHaveProperty('outcome');
    },
  );
});

describe('publish, once BullMQ has stored the outcome,', () => {
  const long = encodeOutcome(reply('a'.repeat(100_000)));
  const short = encodeOutcome(reply('short'));

  it('publishes nothing that was published before it was stored', async () => {
    const [early, late] = [job('early'), job('late')];
    replies.publish(early, short);
    replies.publish(early, short, stored);
    replies.publish(late, short, stored);
    await replies.flush();
    expect(publishedOn('reply.node').map(({ jobId }) => jobId)).toEqual(['early', 'late']);
  });

  it('has a long outcome read from the record that is there by then', async () => {
    const ended = job('one');
    replies.publish(ended, long);
    await replies.flush();
    expect(relay.published).toEqual([]);
    replies.publish(ended, long, stored);
    await replies.flush();
    expect(publishedOn('reply.node')).toEqual([{ jobId: 'one' }]);
  });
});

describe('publish, of stored chats', () => {
  it('informs every API process as well, without outcomes', async () => {
    replies.publish(storedJob('one', 'a'), encodeOutcome(reply('one')));
    replies.publish(storedJob('two', 'b'), encodeOutcome(reply('two')));
    replies.publish(job('ordinary', 'a'), encodeOutcome(reply('ordinary')));
    await replies.flush();
    expect(publishedOn('reply.kept')).toEqual([{ jobId: 'one' }, { jobId: 'two' }]);
    expect(publishedOn('reply.a').map(({ jobId }) => jobId)).toEqual(['one', 'ordinary']);
    expect(decodeOutcome(publishedOn('reply.b')[0]?.outcome)).toEqual(reply('two'));
  });
});

describe('publishFailure', () => {
  it('publishes an internal failure, also of a stored chat that cannot be recorded, and logs that', async () => {
    const failure = { kind: 'failed', code: 'internal', retryable: true };
    replies.publishFailure(job('one'));
    await replies.flush();
    expect(logged.lines).toEqual([]);
    replies.publishFailure(storedJob('two'));
    await replies.flush();
    const published = publishedOn('reply.node').map(({ outcome }) => decodeOutcome(outcome));
    expect(published).toMatchObject([failure, failure]);
    expect(publishedOn('reply.kept')).toEqual([{ jobId: 'two' }]);
    expect(logged.lines.map(({ level }) => level)).toEqual([40]);
  });
});

describe('flush', () => {
  it('waits for what is being published, and survives what cannot be', async () => {
    const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const publishing = [first.promise, second.promise];
    const { log } = logged;
    const send = () => publishing.shift() ?? Promise.resolve();
    const slow = new ReplyPublisher({
      relay: { ...relay, send },
      storedResults: unavailableResults(log),
      log,
    });
    slow.publish(job('one', 'a'), encodeOutcome(reply('a')));
    slow.publish(job('two', 'b'), encodeOutcome(reply('b')));
    const order: string[] = [];
    const flushed = slow.flush().then(() => order.push('flushed'));
    first.reject(new Error('the store is down'));
    setImmediate(() => {
      order.push('second');
      second.resolve();
    });
    await flushed;
    expect(order).toEqual(['second', 'flushed']);
  });
});
