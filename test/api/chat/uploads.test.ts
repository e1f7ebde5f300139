import { randomBytes } from 'node:crypto';
import { describe, expect, it, onTestFinished } from 'vitest';
import { BytesInFlight } from '../../../api/access/bytes-in-flight.js';
import type { ChatCommand, UploadedImage } from '../../../api/chat/chat-command.js';
import { LiveChat } from '../../../api/chat/live-chat.js';
import { StoredAnswers } from '../../../api/chat/stored-answers.js';
import { Uploads } from '../../../api/chat/uploads.js';
import { Failure } from '../../../shared/failures.js';
import { command } from '../../support/attached.js';
import { ok, startChatService, turn, withKey } from '../../support/chat-service.js';

const megabyte = 1_048_576;
const limited = expect.objectContaining({ code: 'rate_limited', status: 429 });
const minute = 60_000;

function upload(bytes: number): UploadedImage {
  const sha256 = randomBytes(32).toString('hex');
  return {
    part: { sha256 },
    bytes: Buffer.allocUnsafe(bytes),
  };
}

/** Uploads to a store in memory, on a clock that the test moves. */
function startUploads() {
  let now = 1_000_000;
  let change = Promise.withResolvers<void>();
  change.resolve();
  const kept = new Map<string, number>();
  const bytesInFlight = new BytesInFlight({ perUser: 64 * megabyte });
  const started = {
    kept,
    bytesInFlight,
    /** The chunks that were written, as `<user> <digest> <number>`. */
    written: [] as string[],
    isDown: false,
    pass: (ms: number) => {
      now += ms;
    },
    /** The store takes nothing until it is resumed. */
    pause: () => {
      change = Promise.withResolvers<void>();
      return change.resolve;
    },
    store: (own: Partial<ChatCommand>, forMs = minute, earlier?: Promise<void>) =>
      uploads.store(command(own), { deadline: now + forMs, chatId: 'chat', earlier }),
  };
  const keep = async (key: string, ttlMs: number) => {
    await change.promise;
    if (started.isDown) throw new Error('down');
    kept.set(key, Math.max(kept.get(key) ?? 0, now + ttlMs));
  };
  const blobs: ConstructorParameters<typeof Uploads>[0]['blobs'] = {
    extend: async ({ user, key }, { chunks, ttlMs }) => {
      const there = Array.from({ length: chunks }, (_, n) => n).filter(
        (n) => (kept.get(`${user} ${key} ${n}`) ?? 0) > now,
      );
      for (const n of there) await keep(`${user} ${key} ${n}`, ttlMs);
      return new Set(there);
    },
    write: async ({ user, key }, { n, ttlMs }) => {
      started.written.push(`${user} ${key} ${n}`);
      await keep(`${user} ${key} ${n}`, ttlMs);
    },
    read: async () => [],
    remove: async ({ user, key }, { chunks }) => {
      for (let n = 0; n < chunks; n += 1) kept.delete(`${user} ${key} ${n}`);
    },
    removeEnded: async () => undefined,
  };
  const room = new StoredAnswers(() => now);
  const uploads = new Uploads({ blobs, room, bytesInFlight, now: () => now });
  return Object.assign(started, { room, uploads, commandOf: command });
}

/** The bytes that a user may still send. */
function leftOf(bytesInFlight: BytesInFlight, user: string): number {
  const held = bytesInFlight.open({ user: { id: user } } as Parameters<BytesInFlight['open']>[0]);
  let left = 0;
  try {
    for (; left < 64; left += 1) held.resize((left + 1) * megabyte);
  } catch {
    // That is all.
  }
  held.release();
  return left;
}

describe('Uploads', () => {
  it('have an image that many send at once → it is written once a user, and its bytes are dropped', async () => {
    const { store, written } = startUploads();
    const image = upload(megabyte);
    const commands = ['one', 'one', 'other', 'one'].map((user) => ({ user, images: [image] }));
    await Promise.all(commands.map((own) => store(own)));
    expect(written.filter((chunk) => chunk.startsWith('one '))).toHaveLength(4);
    expect(written.filter((chunk) => chunk.startsWith('other '))).toHaveLength(4);
    expect(commands.flatMap(({ images }) => images)).toEqual([]);
    await store({ user: 'one', images: [image] });
    expect(written).toHaveLength(8);
  });

  it('have an image → it is kept until a call can no longer begin, by any clock', async () => {
    const { store, kept } = startUploads();
    await store({ images: [upload(100)] });
    expect([...kept.values()]).toEqual([1_000_000 + minute + 5000]);
  });

  it('have an image → its bytes count once while it is stored, with the answers', async () => {
    const { store, pass, room } = startUploads();
    const image = upload(40 * megabyte);
    for (let n = 0; n < 5; n += 1) await store({ user: 'one', images: [image] }, minute + n);
    await expect(store({ user: 'one', images: [upload(25 * megabyte)] })).rejects.toThrow(limited);
    expect(() => room.reserve({ user: 'one', bytes: 25 * megabyte, keptUntil: 2_000_000 })).toThrow(limited);
    await store({ user: 'one', images: [upload(20 * megabyte)] });
    await store({ user: 'other', images: [image] });
    pass(minute + 20_000);
    await store({ user: 'one', images: [upload(60 * megabyte)] });
  });

  it('counts its bytes as in flight until the store has them, even after the request has gone', async () => {
    const { store, pause, bytesInFlight } = startUploads();
    const resume = pause();
    const client = new AbortController();
    const storing = Array.from({ length: 4 }, () =>
      store({ user: 'one', images: [upload(10 * megabyte)], signal: client.signal }).catch(() => undefined),
    );
    await turn();
    client.abort();
    expect([leftOf(bytesInFlight, 'one'), leftOf(bytesInFlight, 'other')]).toEqual([24, 64]);
    resume();
    await Promise.all(storing);
    expect(leftOf(bytesInFlight, 'one')).toBe(64);
  });

  it('have a caller who has left → nothing more is written, unless the chat is stored', async () => {
    const { store, written } = startUploads();
    const signal = AbortSignal.abort();
    const left = store({ images: [upload(megabyte)], signal });
    await expect(left).rejects.toThrow(expect.objectContaining({ code: 'timeout' }));
    expect(written).toEqual([]);
    await store({ images: [upload(megabyte)], signal, storeOptions: withKey });
    expect(written).toHaveLength(4);
  });

  it('are of a request that joins → they are stored if those before were not, and else dropped', async () => {
    const uploads = startUploads();
    const images = [upload(100)];
    await uploads.store({ images }, minute, Promise.resolve());
    expect([images, uploads.written]).toEqual([[], []]);
    await uploads.store({ images: [upload(100)] }, minute, Promise.reject(new Failure('timeout')));
    expect(uploads.written).toHaveLength(1);
  });

  it('have a store that is down → queue_unavailable, and what was written before counts', async () => {
    const started = startUploads();
    started.isDown = true;
    const image = upload(megabyte);
    await expect(started.store({ images: [image] })).rejects.toThrow(
      expect.objectContaining({ code: 'queue_unavailable' }),
    );
    started.isDown = false;
    await started.store({ images: [image] });
    expect(new Set(started.written).size).toBe(4);
  });
});

describe('long texts', () => {
  const textsOf = (bytes: number) => {
    const texts = { bytes: new Uint8Array(bytes), size: bytes, sha256: 'digest', place: [0, bytes] as const };
    return { hasParts: false, texts };
  };
  const chatOf = (id: string, command: ChatCommand, storing?: Promise<void>) => {
    const claimed = { id, deadline: 2_000_000, current: { provider: 'openai' } } as const;
    const chat = new LiveChat(claimed, { attachedAt: 0, pollSlot: 0 });
    chat.opening = { command, level: 0, startBy: 0, receivedAt: 0 };
    chat.storing = storing;
    return chat;
  };
  const namesIn = (kept: Map<string, number>) => [...kept.keys()].map((key) => key.split(' ')[1]);

  it('of two chats with the same texts -> lie apart, need no room, and leave each with its chat', async () => {
    const { uploads, kept, commandOf, room } = startUploads();
    const commands = [0, 1].map(() => commandOf({ written: textsOf(megabyte / 4) }));
    for (const [n, each] of commands.entries())
      await uploads.store(each, { deadline: 1_060_000, chatId: `chat${n}` });
    expect(namesIn(kept)).toEqual(['chat0.digest', 'chat1.digest']);
    for (const { written } of commands)
      expect(written.texts).toMatchObject({ bytes: new Uint8Array(), size: megabyte / 4 });
    room.reserve({ user: 'me', bytes: 64 * megabyte, keptUntil: 2_000_000 });
    uploads.removeTexts(chatOf('chat0', commands[0] as ChatCommand));
    await turn();
    expect(namesIn(kept)).toEqual(['chat1.digest']);
  });

  it('whose caller leaves while they are written -> no more is written, and what was is removed', async () => {
    const { uploads, kept, written, commandOf, pause } = startUploads();
    const client = new AbortController();
    const resume = pause();
    const own = commandOf({ written: textsOf(megabyte), signal: client.signal });
    const storing = uploads.store(own, { deadline: 1_060_000, chatId: 'chat' });
    storing.catch(() => undefined);
    await turn();
    client.abort();
    uploads.removeTexts(chatOf('chat', own, storing));
    resume();
    await expect(storing).rejects.toThrow(expect.objectContaining({ code: 'timeout' }));
    await turn();
    expect([written.length, kept.size]).toEqual([1, 0]);
  });

  it('of a stored chat that is asked for once more -> are written once', async () => {
    const { uploads, written, commandOf } = startUploads();
    const ask = () => commandOf({ written: textsOf(megabyte), storeOptions: withKey });
    const storing = { deadline: 1_060_000, chatId: 'chat' };
    await Promise.all([uploads.store(ask(), storing), uploads.store(ask(), storing)]);
    expect(written).toHaveLength(4);
  });
});

describe('a chat with images', () => {
  it('joins a request → it is added when their images are stored, and stores its own if those could not be', async () => {
    const stores = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const asked: unknown[][] = [];
    const uploads = {
      removeTexts: () => undefined,
      store: async ({ images }: ChatCommand, { earlier }: { earlier?: Promise<void> | undefined }) => {
        asked.push([images?.length, earlier]);
        await stores[asked.length - 1]?.promise;
      },
    };
    const service = startChatService({ uploads });
    onTestFinished(service.end);
    const own = () => ({ storeOptions: withKey, images: [upload(100)] });
    const first = service.ask(own());
    await turn();
    service.claim({ state: 'unknown' });
    const second = service.ask(own());
    await turn();
    expect(asked).toEqual([
      [1, undefined],
      [1, expect.any(Promise)],
    ]);
    expect(service.added).toEqual([]);
    stores[0]?.reject(new Failure('rate_limited'));
    await turn();
    await expect(first).rejects.toThrow(limited);
    expect(service.added).toEqual([]);
    stores[1]?.resolve();
    await turn();
    expect(service.added).toHaveLength(1);
    service.adding.resolve();
    service.chats.onOutcome('one', ok);
    expect(await second).toMatchObject({ kind: 'completed' });
  });
});
