import { createHash } from 'node:crypto';
import { afterAll, describe, expect, it } from 'vitest';
import { JsonThread } from '../../../shared/json/json-thread.js';
import { maxTextBytes, readJson, writeChat } from '../../../shared/json/json-worker.js';
import { mainBytesOf } from '../../../shared/protocol/chat-content.js';

const thread = new JsonThread();
afterAll(() => thread.end());
const limits = { maxDepth: 9, maxValues: 99 };
const bytesOf = (text: string) => new Uint8Array(new TextEncoder().encode(text));

describe('a text that is read in the thread', () => {
  it.each([
    '{"a":["ä🎉",-0,1e400,null],"__proto__":{"b":1}}',
    '"\\ud83c\\udf89"',
    '"\\ud800"',
    '{"a":',
    '\uFEFF{}',
    '['.repeat(10) + ']'.repeat(10),
    `[${'1,'.repeat(99)}1]`,
  ])('gives what it gives without one: %s', async (text) => {
    expect(await thread.read(bytesOf(text), limits)).toEqual(readJson(bytesOf(text), limits));
  });

  it('is no longer in the memory of the one who sent it', async () => {
    const bytes = bytesOf('[1]');
    expect(await thread.read(bytes, limits)).toEqual({ value: [1] });
    expect(bytes.length).toBe(0);
  });
});

describe('a chat that is written in the thread', () => {
  it.each(['x', 'ä', '漢', '🎉', '"', '\u0001'])(
    'of many %j -> the same texts once, as bytes',
    async (character) => {
      const chat = {
        turns: [{ role: 'user' as const, content: character.repeat(maxTextBytes) }],
        parameters: { seed: 1, topP: undefined },
      };
      const written = await thread.write(chat);
      if (!('bytes' in written)) throw new Error('is not written as bytes');
      const { bytes, sha256 } = written;
      expect(Buffer.from(bytes).toString()).toBe(JSON.stringify(chat));
      expect(sha256).toBe(createHash('sha256').update(bytes).digest('hex'));
      const request = { hasParts: false, texts: written };
      expect(Buffer.from(mainBytesOf(request)).toString()).toBe(JSON.stringify(chat.turns));
    },
  );

  it('without parameters -> has none', async () => {
    const turns = [{ role: 'user', content: 'x'.repeat(maxTextBytes) }];
    const written = await thread.write({ turns, parameters: undefined });
    expect('bytes' in written && Buffer.from(written.bytes).toString()).toBe(JSON.stringify({ turns }));
  });

  it('and is small -> is written as it would be without one', async () => {
    const chat = { turns: [{ role: 'user', content: 'Hello \u0000 🎉' }], parameters: { seed: 1 } };
    expect(await thread.write(chat)).toEqual(writeChat(chat));
  });
});

it('a thread that ends -> its task alone fails, and the next one gets another thread', async () => {
  const starting = new JsonThread();
  const tasks = [1, 2].map((n) => starting.read(bytesOf(`[${n}]`), limits));
  // The thread has begun to start, and has read nothing.
  await Promise.resolve();
  await starting.end();
  const [first, second] = await Promise.allSettled(tasks);
  expect(first).toMatchObject({ status: 'rejected', reason: { code: 'overloaded', retryable: true } });
  expect(second).toMatchObject({ status: 'fulfilled', value: { value: [2] } });
  await starting.end();
});
