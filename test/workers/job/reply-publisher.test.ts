import { beforeEach, describe, expect, it } from 'vitest';
import { type ResultMessage, resultMessageSchema } from '../../../shared/protocol/messages.js';
import { decodeOutcome, encodeOutcome, type Outcome } from '../../../shared/protocol/outcome.js';
import { ReplyPublisher } from '../../../workers/job/stored-results.js';
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

const job = (id: string, replyTo = 'node', facts = {}) => takeJob({ id, data: { replyTo, ...facts } });
const storedJob = (id: string, replyTo?: string) => job(id, replyTo, { keptUntil: Date.now() + 60_000 });
const stored = { isStored: true };
const reply = (text: string): Outcome => ({ kind: 'ok', text, model: 'm', queueMs: 1, providerMs: 2 });
const encoded = (text: string) => encodeOutcome(reply(text));
/** The messages of a topic, as they arrive. */
const publishedOn = (topic: string): ResultMessage['settled'] =>
  relay.published
    .filter((published) => published.topic === topic)
    .flatMap(({ message }) => resultMessageSchema.parse(JSON.parse(JSON.stringify(message))).settled);
const idsOn = (topic: string) => publishedOn(topic).map(({ jobId }) => jobId);

describe('an outcome', () => {
  it('is published to the API process that waits, with all that end at once in one message, without being flushed', async () => {
    for (const id of ['one', 'two', 'three']) replies.publish(job(id), encoded(`canary ${id}`));
    replies.publish(job('other', 'elsewhere'), encoded('other'));
    await relay.publishedAtLeast(2);
    expect(relay.published.map(({ topic }) => topic)).toEqual(['reply.node', 'reply.elsewhere']);
    expect([idsOn('reply.node'), idsOn('reply.elsewhere')]).toEqual([['one', 'two', 'three'], ['other']]);
    expect(decodeOutcome(publishedOn('reply.node')[0]?.outcome)).toEqual(reply('canary one'));
    replies.publish(job('four'), encoded('four'));
    await relay.publishedAtLeast(3);
    expect(idsOn('reply.node')).toEqual(['one', 'two', 'three', 'four']);
    expect(logged.text()).not.toContain('canary');
  });

  it.each(['a', '\u0001', '"', '\\', '語', '🎉'])(
    'is published, however long a text of %j',
    async (character) => {
      const lengths = [...Array<number>(50).fill(5000), 10_000, 39_000, 79_000, 80_000, 100_000, 2_000_000];
      for (const [n, length] of lengths.entries())
        replies.publish(job(`${n}`), encoded(character.repeat(length)), stored);
      await replies.flush();
      expect(idsOn('reply.node')).toEqual(lengths.map((_, n) => `${n}`));
      const published = publishedOn('reply.node');
      expect(decodeOutcome(published[0]?.outcome)).toEqual(reply(character.repeat(5000)));
      expect(published.at(-1)).not.toHaveProperty('outcome');
    },
  );

  it('was published before BullMQ has stored it -> not again; a long one only then, to be read from the record', async () => {
    const long = encoded('a'.repeat(100_000));
    const [early, late] = [job('early'), job('late')];
    replies.publish(early, encoded('short'));
    replies.publish(late, long);
    await replies.flush();
    expect(idsOn('reply.node')).toEqual(['early']);
    replies.publish(early, encoded('short'), stored);
    replies.publish(late, long, stored);
    await replies.flush();
    expect(publishedOn('reply.node').slice(1)).toEqual([{ jobId: 'late' }]);
  });

  it('is of a stored chat -> every API process is informed as well, without the outcome', async () => {
    replies.publish(storedJob('one', 'a'), encoded('one'));
    replies.publish(storedJob('two', 'b'), encoded('two'));
    replies.publish(job('ordinary', 'a'), encoded('ordinary'));
    await replies.flush();
    expect(publishedOn('reply.kept')).toEqual([{ jobId: 'one' }, { jobId: 'two' }]);
    expect(idsOn('reply.a')).toEqual(['one', 'ordinary']);
    expect(decodeOutcome(publishedOn('reply.b')[0]?.outcome)).toEqual(reply('two'));
  });
});

it('a job that broke -> an internal failure, also of a stored chat that cannot be recorded, which is logged', async () => {
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

it('a flush -> waits for what is being published, and survives what cannot be', async () => {
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const publishing = [first.promise, second.promise];
  relay.send = () => publishing.shift() ?? Promise.resolve();
  replies.publish(job('one', 'a'), encoded('a'));
  replies.publish(job('two', 'b'), encoded('b'));
  const order: string[] = [];
  const flushed = replies.flush().then(() => order.push('flushed'));
  first.reject(new Error('the store is down'));
  setImmediate(() => {
    order.push('second');
    second.resolve();
  });
  await flushed;
  expect(order).toEqual(['second', 'flushed']);
});
