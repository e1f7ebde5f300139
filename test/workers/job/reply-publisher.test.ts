import { beforeEach, describe, expect, it } from 'vitest';
import { type Reply, resultMessageSchema } from '../../../shared/protocol/messages.js';
import { decodeOutcome, encodeOutcome, type Outcome } from '../../../shared/protocol/outcome.js';
import { createReplyPublisher, type ReplyPublisher } from '../../../workers/job/reply-publisher.js';
import { createStoredResults, type StoredResults } from '../../../workers/job/stored-results.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { createRecordingRelay, type RecordingRelay } from '../../support/recording-relay.js';

let relay: RecordingRelay;
let logged: ReturnType<typeof createRecordingLog>;
let replies: ReplyPublisher;

beforeEach(() => {
  relay = createRecordingRelay();
  logged = createRecordingLog();
  replies = createReplyPublisher({ relay, storedResults: storedResults(), log: logged.log });
});

/** Of a store that nobody reaches: the outcomes of ordinary jobs have nothing to do with it. */
const storedResults = (): StoredResults => {
  const away = () => Promise.reject(new Error('the store is down'));
  const records = { read: away, readAll: away, create: away, replace: away, removeEnded: away };
  return createStoredResults({ records, log: logged.log, patienceMs: 0 });
};
const job = (id: string, replyTo = 'node') => ({ id, data: { replyTo } });
const keptJob = (id: string, replyTo = 'node') => ({ id, data: { replyTo, keptUntil: Date.now() + 60_000 } });
const reply = (text: string): Outcome => ({ kind: 'ok', text, model: 'm', queueMs: 1, providerMs: 2 });
/** What was told on a topic, as it arrives. */
const toldOn = (topic: string): Reply['settled'] =>
  relay.told
    .filter((told) => told.topic === topic)
    .flatMap(({ message }) => resultMessageSchema.parse(JSON.parse(JSON.stringify(message))).settled);

describe('settled', () => {
  it('tells the API process that waits, with the outcome, without being flushed', async () => {
    replies.settled(job('one'), encodeOutcome(reply('canary')));
    await relay.toldAtLeast(1);
    const [settlement] = toldOn('reply.node');
    expect(settlement?.jobId).toBe('one');
    expect(decodeOutcome(settlement?.outcome)).toEqual(reply('canary'));
    expect(logged.text()).not.toContain('canary');
  });

  it('tells what settles at once in one message to each process, and what comes later in another', async () => {
    for (const id of ['one', 'two', 'three']) replies.settled(job(id), encodeOutcome(reply(id)));
    replies.settled(job('other', 'elsewhere'), encodeOutcome(reply('other')));
    await relay.toldAtLeast(2);
    expect(relay.told.map(({ topic }) => topic)).toEqual(['reply.node', 'reply.elsewhere']);
    expect(toldOn('reply.node').map(({ jobId }) => jobId)).toEqual(['one', 'two', 'three']);
    expect(toldOn('reply.elsewhere').map(({ jobId }) => jobId)).toEqual(['other']);
    replies.settled(job('four'), encodeOutcome(reply('four')));
    await relay.toldAtLeast(3);
    expect(toldOn('reply.node').map(({ jobId }) => jobId)).toEqual(['one', 'two', 'three', 'four']);
  });

  it.each([
    ['letters', 'a'],
    ['control characters', '\u0001'],
    ['quotes', '"'],
    ['backslashes', '\\'],
    ['wide characters', '語'],
    ['emoji', '🎉'],
  ])('tells every job, whatever its text is made of and however long it is: %s', async (_, character) => {
    const lengths = [
      ...Array.from({ length: 50 }, () => 5000),
      10_000,
      39_000,
      79_000,
      80_000,
      100_000,
      2_000_000,
    ];
    const ids = lengths.map((length, n) => `${n}-${length}`);
    for (const [n, length] of lengths.entries()) {
      replies.settled(job(ids[n] ?? ''), encodeOutcome(reply(character.repeat(length))));
    }
    await replies.flush();
    const told = toldOn('reply.node');
    expect(told.map(({ jobId }) => jobId)).toEqual(ids);
    expect(decodeOutcome(told[0]?.outcome)).toEqual(reply(character.repeat(5000)));
    expect(told.at(-1)).not.toHaveProperty('outcome');
  });
});

describe('settled, of stored chats', () => {
  it('tells every API process as well, of the jobs alone', async () => {
    replies.settled(keptJob('one', 'a'), encodeOutcome(reply('one')));
    replies.settled(keptJob('two', 'b'), encodeOutcome(reply('two')));
    replies.settled(job('ordinary', 'a'), encodeOutcome(reply('ordinary')));
    await replies.flush();
    expect(toldOn('reply.kept')).toEqual([{ jobId: 'one' }, { jobId: 'two' }]);
    expect(toldOn('reply.a').map(({ jobId }) => jobId)).toEqual(['one', 'ordinary']);
    expect(decodeOutcome(toldOn('reply.b')[0]?.outcome)).toEqual(reply('two'));
  });
});

describe('broke', () => {
  it('tells an internal failure and nothing of the error', async () => {
    replies.broke(job('one'), new Error('canary'));
    await replies.flush();
    const outcome = toldOn('reply.node')[0]?.outcome;
    expect(decodeOutcome(outcome)).toMatchObject({ kind: 'failed', code: 'internal', retryable: true });
    expect(outcome).not.toContain('canary');
    expect(logged.lines).toEqual([expect.objectContaining({ level: 50, jobId: 'one' })]);
  });

  it('tells of a stored chat also when its outcome cannot be recorded, and says so in the log', async () => {
    replies.broke(keptJob('one'), new Error('x'));
    await replies.flush();
    expect(decodeOutcome(toldOn('reply.node')[0]?.outcome)).toMatchObject({ code: 'internal' });
    expect(toldOn('reply.kept')).toEqual([{ jobId: 'one' }]);
    expect(logged.lines.map(({ level }) => level)).toEqual([50, 40]);
  });

  it.each([null, 'text', {}, { replyTo: 7 }])(
    'logs a job whose data is %j, and tells nobody',
    async (data) => {
      replies.broke({ id: 'one', data }, new Error('x'));
      await replies.flush();
      expect(relay.told).toEqual([]);
      expect(logged.lines).toEqual([expect.objectContaining({ level: 50, jobId: 'one' })]);
    },
  );

  it('logs a job that is gone, and tells nobody', async () => {
    replies.broke(undefined, new Error('x'));
    await replies.flush();
    expect(relay.told).toEqual([]);
    expect(logged.lines).toHaveLength(1);
  });
});

describe('flush', () => {
  it('waits for what is under way, and survives what cannot be told', async () => {
    const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const publishing = [first.promise, second.promise];
    const slow = { ...relay, publish: () => publishing.shift() ?? Promise.resolve() };
    const patient = createReplyPublisher({ relay: slow, storedResults: storedResults(), log: logged.log });
    patient.settled(job('one', 'a'), encodeOutcome(reply('a')));
    patient.settled(job('two', 'b'), encodeOutcome(reply('b')));
    const order: string[] = [];
    const flushed = patient.flush().then(() => order.push('flushed'));
    first.reject(new Error('the store is down'));
    setImmediate(() => {
      order.push('second');
      second.resolve();
    });
    await flushed;
    expect(order).toEqual(['second', 'flushed']);
  });
});
