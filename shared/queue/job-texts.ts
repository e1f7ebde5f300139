import { type ChatJob, type JobTexts, jobTextsSchema, type LongTexts } from '../protocol/messages.js';
import { type BlobName, type BlobStore, countChunks, readBlob } from './blobs.js';

/**
 * The texts of a job that are too long for it lie beside it as a blob: one for each chat, whose attempts all name it,
 * so that what another chat has sent stays when this one ends.
 */
export const nameOfTexts = (
  chat: { id: string; user: string },
  { sha256 }: Pick<LongTexts, 'sha256'>,
): BlobName => ({
  user: chat.user,
  key: `${chat.id}.${sha256}`,
});

/** Longer texts are read and written in a thread; for others the way there and back costs as much as the work. */
export const threadBytes = 2_097_152;

/** Reads JSON text in a thread of its own. */
export type ParseJson = (text: Buffer) => Promise<unknown>;

/** Throws a retryable `internal` if they are gone, as after a crash of PostgreSQL, or the store is down. */
export async function readTexts(
  { blobs, parse }: { blobs: BlobStore; parse: ParseJson },
  chatId: string,
  { user, texts }: Pick<ChatJob, 'user' | 'texts'>,
): Promise<JobTexts> {
  if (texts === undefined) throw new Error('a job without texts');
  const text = await readBlob(blobs, nameOfTexts({ id: chatId, user }, texts), texts.bytes);
  return jobTextsSchema.parse(text.length > threadBytes ? await parse(text) : JSON.parse(text.toString()));
}

interface EndedJob {
  readonly id?: string | undefined;
  readonly data: Pick<ChatJob, 'chatId' | 'user' | 'texts'>;
}

/** Removes the texts that lie beside the last job of a chat. */
export async function removeTexts(blobs: BlobStore, { id = '', data }: EndedJob): Promise<void> {
  const { chatId = id, user, texts } = data;
  if (texts)
    await blobs.remove(nameOfTexts({ id: chatId, user }, texts), { chunks: countChunks(texts.bytes) });
}
