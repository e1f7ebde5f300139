import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { parseConfig } from '../../../shared/config/config.js';
import { maxMessageBytes, openRelay, type Relay } from '../../../shared/queue/relay.js';
import { openQueueStore } from '../../../shared/queue/stores/open.js';
import { patience, patienceMs } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { describeStores } from '../../support/shared-store.js';

const logged = createRecordingLog();
const configOf = (variables: Record<string, string>) => parseConfig(variables, 'config');

const schema = z.object({ text: z.string() });
type Message = z.output<typeof schema>;

type Listen = 'subscribe' | 'receive' | 'follow';

/** Resolves once it listens; `heard` grows, and `untilLast` gives everything heard up to the message `last`. */
async function listen(
  relay: Relay,
  topic: string,
  how: Listen = 'subscribe',
): Promise<{ heard: string[]; untilLast: Promise<string[]> }> {
  const heard: string[] = [];
  const { promise, resolve } = Promise.withResolvers<string[]>();
  await relay[how](topic, schema, ({ text }: Message) => {
    heard.push(text);
    if (text === 'last') resolve(heard);
  });
  return { heard, untilLast: promise };
}

/** To all that subscribe, and to the one process that receives. */
const ways = [
  { say: 'publish', hear: 'subscribe' },
  { say: 'send', hear: 'receive' },
] as const;

describeStores('openRelay on a $kind store', logged.log, (shared, name) => {
  let relays: Relay[] = [];
  afterEach(async () => {
    await Promise.all(relays.map((relay) => relay.close()));
    relays = [];
  });
  const open = async (name = 'test', of = shared.another): Promise<Relay> => {
    const relay = await openRelay(of, { name, log: logged.log });
    relays.push(relay);
    return relay;
  };

  it('two processes -> each knows both, until one closes', async () => {
    const [one, two] = [await open('one'), await open('two', shared.store)];
    const ids = async (relay: Relay) => new Set((await relay.nodes()).map(({ id }) => id));
    const both = new Set([one.nodeId, two.nodeId]);
    expect([await ids(one), await ids(two)]).toEqual([both, both]);
    for (const { lastHeartbeat } of await one.nodes()) expect(lastHeartbeat).toBeGreaterThan(0);
    await two.close();
    expect(await ids(one)).toEqual(new Set([one.nodeId]));
  });

  it('all who listen, also under the same name -> hear everything in order, and nothing from before', async () => {
    const [teller, one, two] = [await open('teller'), await open('api'), await open('api')];
    await teller.publish('reply.a', { text: 'before anyone listens' });
    const heard = [await listen(one, 'reply.a'), await listen(two, 'reply.a')];
    const texts = [...Array.from({ length: 50 }, (_, n) => `${n}`), 'last'];
    for (const text of texts) await teller.publish('reply.a', { text });
    for (const { untilLast } of heard) expect(await untilLast).toEqual(texts);
  });

  it('a topic -> its listeners alone hear of it; a pattern hears all that it covers', async () => {
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

  it.each(ways)(
    'what they $say -> keeps every character and the order, past a listener that throws',
    async ({ say, hear }) => {
      const relay = await open();
      await relay[hear](`reply.b-${say}`, schema, () => {
        throw new Error('x');
      });
      const heard = await listen(relay, `reply.b-${say}`, hear);
      const texts = ['\u0000\u0001\u001F\u007F', '"\\/', '\u2028🎉\uFFFF', 'e\u0301', 'last'];
      for (const text of texts) await relay[say](`reply.b-${say}`, { text });
      expect(await heard.untilLast).toEqual(texts);
    },
  );

  it.each(ways)(
    'what they $say and cannot be read -> is ignored, which is said once without quoting it',
    async ({ say, hear }) => {
      const relay = await open();
      const topic = `reply.c-${say}`;
      const heard = await listen(relay, topic, hear);
      for (const message of [{ v: 5, text: 1, canary: 'canary' }, ['canary'], {}])
        await relay[say](topic, message);
      await relay[say](topic, { text: 'last' });
      expect(await heard.untilLast).toEqual(['last']);
      const noted = logged.lines.splice(0).filter((line) => line.topic === topic);
      expect(noted.map(({ level, isNewer }) => [level, isNewer])).toEqual([
        [40, true],
        [20, false],
        [20, false],
      ]);
      expect(logged.text()).not.toContain('canary');
    },
  );

  it('a message over its bound, or a relay that is closed -> refused', async () => {
    const relay = await open();
    await expect(relay.publish('reply.f', { text: 'x'.repeat(maxMessageBytes) })).rejects.toThrow('');
    await relay.close();
    await expect(relay.publish('reply.f', { text: 'x' })).rejects.toThrow('');
  });

  it('a process of the release before, or after -> hears what is sent, and what is published', async () => {
    const relay = await open();
    const older = await listen(relay, 'reply.g', 'subscribe');
    await relay.send('reply.g', { text: 'last' });
    expect(await older.untilLast).toEqual(['last']);
    const newer = await listen(relay, 'reply.h', 'receive');
    await relay.publish('reply.h', { text: 'last' });
    expect(await newer.untilLast).toEqual(['last']);
  });

  it('a broadcast -> all who follow hear it', async () => {
    const relay = await open();
    const others = [
      await listen(relay, 'processes', 'follow'),
      await listen(await open(), 'processes', 'follow'),
    ];
    await relay.broadcast('processes', { text: 'last' });
    for (const heard of others) expect(await heard.untilLast).toEqual(['last']);
  });

  describe.runIf(name === 'redis')('by publish/subscribe', () => {
    let redis: Redis;
    beforeAll(() => {
      redis = new Redis(shared.url);
    });
    afterAll(() => redis.disconnect());

    /** From then on only what goes by publish/subscribe arrives, for two seconds. */
    const forgetSubscriptions = () => redis.unlink('bull::relay:{quillgate}:subs');

    it('a process that receives -> is sent to past its inbox', async () => {
      const relay = await open();
      const heard = await listen(relay, 'reply.i', 'receive');
      await forgetSubscriptions();
      await relay.send('reply.i', { text: 'last' });
      expect(await heard.untilLast).toEqual(['last']);
    });

    it('a connection that is away -> nothing is lost, and it is sent to past its inbox when it is back', async () => {
      const [relay, far] = [await open(), await open('far', shared.store)];
      const { heard, untilLast } = await listen(far, 'reply.j', 'receive');
      const channels = async () => (await redis.pubsub('CHANNELS', '*reply.j')) as unknown[];
      await shared.wire.cut();
      await vi.waitUntil(async () => (await channels()).length === 0, patience);
      await relay.send('reply.j', { text: 'meanwhile' });
      await shared.wire.mend();
      await vi.waitUntil(async () => (await channels()).length === 1, patience);
      // Only then: what goes past the inbox may overtake what still lies there.
      await vi.waitUntil(() => heard.length === 1, patience);
      await forgetSubscriptions();
      await relay.send('reply.j', { text: 'last' });
      expect(await untilLast).toEqual(['meanwhile', 'last']);
    });

    /** The store of a user who may use no channels. */
    const openNarrow = async () => {
      await redis.acl('SETUSER', 'narrow', 'on', '>secret', '~*', '+@all', 'resetchannels');
      const url = new URL(shared.url);
      Object.assign(url, { username: 'narrow', password: 'secret' });
      const narrow = openQueueStore(configOf({ REDIS_URL: url.href }), logged.log);
      await narrow.whenReady(AbortSignal.timeout(patienceMs));
      return narrow;
    };

    it('an ACL that forbids the channels -> does without, and says so once', async () => {
      const narrow = await openNarrow();
      const relay = await open('narrow', narrow);
      const heard = await listen(relay, 'reply.k', 'receive');
      for (const text of ['first', 'last']) await relay.send('reply.k', { text });
      expect(await heard.untilLast).toEqual(['first', 'last']);
      const warnings = logged.lines.filter(({ level }) => level === 40);
      expect(warnings.map(({ msg }) => msg)).toEqual(['Redis refuses publish/subscribe']);
      await relay.close();
      await narrow.close();
    });

    it('a broadcast -> goes past the inboxes, and through them to those whom an ACL forbids the channels', async () => {
      const narrow = await openNarrow();
      const [allowed, refused] = [await open(), await open('narrow', narrow)];
      const heardAllowed = await listen(allowed, 'processes', 'follow');
      await refused.broadcast('processes', { text: 'from one who may not publish' });
      const heardRefused = await listen(refused, 'processes', 'follow');
      await allowed.broadcast('processes', { text: 'last' });
      expect(await heardAllowed.untilLast).toEqual(['from one who may not publish', 'last']);
      expect(await heardRefused.untilLast).toEqual(['last']);
      await refused.close();
      await narrow.close();
    });
  });
});
