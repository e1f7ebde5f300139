import { hash, randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { countChunks, nameOfTexts, readTexts, removeTexts, writeBlob } from '../../../shared/queue/blobs.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { describeStores } from '../../support/shared-store.js';

const turns = [{ role: 'user' as const, content: '雨"\u0000'.repeat(500_000) }];
const text = Buffer.from(JSON.stringify({ turns, parameters: { temperature: 0 } }));
const texts = { sha256: hash('sha256', text, 'hex'), bytes: text.length };
const chunks = countChunks(texts.bytes);
const gone = expect.objectContaining({
  ...{ code: 'internal', retryable: true },
  cause: expect.objectContaining({ name: 'BlobGone' }),
});

describeStores('the texts of jobs in a $kind store', createRecordingLog().log, (shared) => {
  const write = async (user: string, id: string = randomUUID()) => {
    const name = nameOfTexts({ id, user }, texts);
    await writeBlob(shared.store.blobs, name, { bytes: text, ttlMs: () => 3_600_000 });
    return { name, id, user };
  };
  const read = ({ id, user }: { id: string; user: string }) => {
    const parse = async (bytes: Buffer) => JSON.parse(bytes.toString());
    return readTexts({ blobs: shared.another.blobs, parse }, id, { user, texts });
  };

  it('the same of two users, and of two chats of one -> each chat removes its own', async () => {
    const [one, two, three] = [await write('A'), await write('A'), await write('B')];
    await removeTexts(shared.another.blobs, { id: one.id, data: { user: 'A', texts } });
    await expect(read(one)).rejects.toThrow(gone);
    for (const other of [two, three])
      expect(await read(other)).toEqual({ turns, parameters: { temperature: 0 } });
  });

  it('of a later attempt -> are those of its chat', async () => {
    const chat = await write('A');
    const data = { user: 'A', texts, chatId: chat.id };
    expect(await read(chat)).toMatchObject({ turns });
    await removeTexts(shared.another.blobs, { id: `${chat.id}-2`, data });
    const left = await shared.another.blobs.read(chat.name, { chunks });
    expect(left).toEqual(Array(chunks).fill(undefined));
  });
});
