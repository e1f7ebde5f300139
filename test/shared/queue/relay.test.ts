import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { parseConfig } from '../../../shared/config/config.js';
import type { QueueStore } from '../../../shared/queue/queue-store.js';
import { maxMessageBytes, openRelay, type Relay } from '../../../shared/queue/relay.js';
import { migrateQueueStore, openQueueStore } from '../../../shared/queue/stores/open.js';
import { startEmptyDatabase, type TestDatabase } from '../../support/database.js';
import { createRecordingLog } from '../../support/recording-log.js';

const logged = createRecordingLog();
let postgres: TestDatabase;
let store: QueueStore;
let telegraphs: Relay[] = [];

beforeAll(async () => {
  postgres = await startEmptyDatabase();
  const config = parseConfig({ DATABASE_URL: postgres.url }, 'migrate');
  await migrateQueueStore(config);
  store = openQueueStore(config, logged.log);
});
afterAll(async () => {
  await store?.close();
  await postgres?.stop();
});

afterEach(async () => {
  await Promise.all(telegraphs.map((relay) => relay.close()));
  telegraphs = [];
});

async function open(name = 'test'): Promise<Relay> {
  const relay = await openRelay(store, { name, log: logged.log });
  telegraphs.push(relay);
  return relay;
}

const schema = z.object({ text: z.string() });
type Message = z.output<typeof schema>;

/** Resolves once it listens; `untilLast` then gives everything heard up to the message `last`. */
async function listen(relay: Relay, topic: string): Promise<{ untilLast: Promise<string[]> }> {
  const heard: string[] = [];
  const { promise, resolve } = Promise.withResolvers<string[]>();
  await relay.subscribe(topic, schema, ({ text }: Message) => {
    heard.push(text);
    if (text === 'last') resolve(heard);
  });
  return { untilLast: promise };
}

describe('openRelay', () => {
  it('tells everyone who listens, in order, also under the same name', async () => {
    const [teller, one, two] = [await open('teller'), await open('api'), await open('api')];
    const heard = [await listen(one, 'reply.a'), await listen(two, 'reply.a')];
    const texts = [...Array.from({ length: 50 }, (_, n) => `${n}`), 'last'];
    for (const text of texts) await teller.publish('reply.a', { text });
    for (const { untilLast } of heard) expect(await untilLast).toEqual(texts);
  });

  it('tells one topic to its listeners alone, and a pattern all it covers', async () => {
    const relay = await open();
    const one = await listen(relay, 'pool.openai.w1');
    const rest = await listen(relay, 'pool.>');
    const segment = await listen(relay, 'pool.*.w1');
    await relay.publish('pool.openai.w2', { text: 'openai two' });
    await relay.publish('pool.bedrock.w1', { text: 'bedrock one' });
    await relay.publish('reply.x', { text: 'elsewhere' });
    await relay.publish('pool.openai.w1', { text: 'last' });
    expect(await one.untilLast).toEqual(['last']);
    expect(await rest.untilLast).toEqual(['openai two', 'bedrock one', 'last']);
    expect(await segment.untilLast).toEqual(['bedrock one', 'last']);
  });

  it('keeps every character of a text', async () => {
    const relay = await open();
    const heard = await listen(relay, 'reply.b');
    const texts = ['\u0000\u0001\u001F\u007F', '"\\/', '\u2028🎉\uFFFF', 'e\u0301'];
    for (const text of [...texts, 'last']) await relay.publish('reply.b', { text });
    expect(await heard.untilLast).toEqual([...texts, 'last']);
  });

  it('ignores what has another shape or is newer, and says so once without quoting it', async () => {
    const relay = await open();
    const heard = await listen(relay, 'reply.c');
    for (const message of [{ v: 2, text: 1, canary: 'canary' }, ['canary'], {}])
      await relay.publish('reply.c', message);
    await relay.publish('reply.c', { text: 'last' });
    expect(await heard.untilLast).toEqual(['last']);
    const noted = logged.lines.filter((line) => line.topic === 'reply.c');
    expect(noted.map(({ level, isNewer }) => ({ level, isNewer }))).toEqual([
      { level: 40, isNewer: true },
      { level: 20, isNewer: false },
      { level: 20, isNewer: false },
    ]);
    expect(logged.text()).not.toContain('canary');
  });

  it('goes on after a listener that throws', async () => {
    const relay = await open();
    await relay.subscribe('reply.d', schema, () => {
      throw new Error('x');
    });
    const heard = await listen(relay, 'reply.d');
    for (const text of ['first', 'last']) await relay.publish('reply.d', { text });
    expect(await heard.untilLast).toEqual(['first', 'last']);
  });

  it('replays nothing to a late listener', async () => {
    const relay = await open();
    await relay.publish('reply.e', { text: 'early' });
    const heard = await listen(relay, 'reply.e');
    await relay.publish('reply.e', { text: 'last' });
    expect(await heard.untilLast).toEqual(['last']);
  });

  it('refuses a message over its bound and a relay that is closed', async () => {
    const relay = await open();
    await expect(relay.publish('reply.f', { text: 'x'.repeat(maxMessageBytes) })).rejects.toThrow('');
    await relay.close();
    await expect(relay.publish('reply.f', { text: 'x' })).rejects.toThrow('');
  });
});
