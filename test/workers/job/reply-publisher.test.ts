import { beforeEach, describe, expect, it } from 'vitest';
import { type Reply, replySchema } from '../../../shared/protocol/messages.js';
import { decodeOutcome, encodeOutcome, type Outcome } from '../../../shared/protocol/outcome.js';
import { createReplier, type Replier } from '../../../workers/job/reply-publisher.js';
import { createKeptOutcomes, type KeptOutcomes } from '../../../workers/job/stored-results.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { createRecordingTelegraph, type RecordingTelegraph } from '../../support/recording-telegraph.js';

let telegraph: RecordingTelegraph;
let logged: ReturnType<typeof createRecordingLog>;
let replier: Replier;

beforeEach(() => {
  telegraph = createRecordingTelegraph();
  logged = createRecordingLog();
  replier = createReplier({ telegraph, keptOutcomes: keptOutcomes(), log: logged.log });
});

/** Of a store that nobody reaches: the outcomes of ordinary jobs have nothing to do with it. */
const keptOutcomes = (): KeptOutcomes => {
  const away = () => Promise.reject(new Error('the store is down'));
  const records = { read: away, readAll: away, create: away, replace: away, removeEnded: away };
  return createKeptOutcomes({ records, log: logged.log, patienceMs: 0 });
};
const job = (id: string, replyTo = 'node') => ({ id, data: { replyTo } });
const keptJob = (id: string, replyTo = 'node') => ({ id, data: { replyTo, keptUntil: Date.now() + 60_000 } });
const reply = (text: string): Outcome => ({ kind: 'ok', text, model: 'm', queueMs: 1, providerMs: 2 });
/** What was told on a topic, as it arrives. */
const toldOn = (topic: string): Reply['settled'] =>
  telegraph.told
    .filter((told) => told.topic === topic)
    .flatMap(({ message }) => replySchema.parse(JSON.parse(JSON.stringify(message))).settled);

describe('settled', () => {
  it('tells the API process that waits, with the outcome, without being flushed', async () => {
    replier.settled(job('one'), encodeOutcome(reply('canary')));
    await telegraph.toldAtLeast(1);
    const [settlement] = toldOn('reply.node');
    expect(settlement?.jobId).toBe('one');
    expect(decodeOutcome(settlement?.outcome)).toEqual(reply('canary'));
    expect(logged.text()).not.toContain('canary');
  });

  it('tells what settles at once in one message to each process, and what comes later in another', async () => {
    for (const id of ['one', 'two', 'three']) replier.settled(job(id), encodeOutcome(reply(id)));
    replier.settled(job('other', 'elsewhere'), encodeOutcome(reply('other')));
    await telegraph.toldAtLeast(2);
    expect(telegraph.told.map(({ topic }) => topic)).toEqual(['reply.node', 'reply.elsewhere']);
    expect(toldOn('reply.node').map(({ jobId }) => jobId)).toEqual(['one', 'two', 'three']);
    expect(toldOn('reply.elsewhere').map(({ jobId }) => jobId)).toEqual(['other']);
    replier.settled(job('four'), encodeOutcome(reply('four')));
    await telegraph.toldAtLeast(3);
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
      replier.settled(job(ids[n] ?? ''), encodeOutcome(reply(character.repeat(length))));
    }
    await replier.flush();
    const told = toldOn('reply.node');
    expect(told.map(({ jobId }) => jobId)).toEqual(ids);
    expect(decodeOutcome(told[0]?.outcome)).toEqual(reply(character.repeat(5000)));
    expect(told.at(-1)).not.toHaveProperty('outcome');
  });
});

describe('settled, of kept chats', () => {
  it('tells every API process as well, of the jobs alone', async () => {
    replier.settled(keptJob('one', 'a'), encodeOutcome(reply('one')));
    replier.settled(keptJob('two', 'b'), encodeOutcome(reply('two')));
    replier.settled(job('ordinary', 'a'), encodeOutcome(reply('ordinary')));
    await replier.flush();
    expect(toldOn('reply.kept')).toEqual([{ jobId: 'one' }, { jobId: 'two' }]);
    expect(toldOn('reply.a').map(({ jobId }) => jobId)).toEqual(['one', 'ordinary']);
    expect(decodeOutcome(toldOn('reply.b')[0]?.outcome)).toEqual(reply('two'));
  });
});

describe('broke', () => {
  it('tells an internal failure and nothing of the error', async () => {
    replier.broke(job('one'), new Error('canary'));
    await replier.flush();
    const outcome = toldOn('reply.node')[0]?.outcome;
    expect(decodeOutcome(outcome)).toMatchObject({ kind: 'failed', code: 'internal', retryable: true });
    expect(outcome).not.toContain('canary');
    expect(logged.lines).toEqual([expect.objectContaining({ level: 50, jobId: 'one' })]);
  });

  it('tells of a kept chat also when its outcome cannot be recorded, and says so in the log', async () => {
    replier.broke(keptJob('one'), new Error('x'));
    await replier.flush();
    expect(decodeOutcome(toldOn('reply.node')[0]?.outcome)).toMatchObject({ code: 'internal' });
    expect(toldOn('reply.kept')).toEqual([{ jobId: 'one' }]);
    expect(logged.lines.map(({ level }) => level)).toEqual([50, 40]);
  });

  it.each([null, 'text', {}, { replyTo: 7 }])(
    'logs a job whose data is %j, and tells nobody',
    async (data) => {
      replier.broke({ id: 'one', data }, new Error('x'));
      await replier.flush();
      expect(telegraph.told).toEqual([]);
      expect(logged.lines).toEqual([expect.objectContaining({ level: 50, jobId: 'one' })]);
    },
  );

  it('logs a job that is gone, and tells nobody', async () => {
    replier.broke(undefined, new Error('x'));
    await replier.flush();
    expect(telegraph.told).toEqual([]);
    expect(logged.lines).toHaveLength(1);
  });
});

describe('flush', () => {
  it('waits for what is under way, and survives what cannot be told', async () => {
    const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const publishing = [first.promise, second.promise];
    const slow = { ...telegraph, publish: () => publishing.shift() ?? Promise.resolve() };
    const patient = createReplier({ telegraph: slow, keptOutcomes: keptOutcomes(), log: logged.log });
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
