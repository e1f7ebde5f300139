import {
  type ImagePart,
  imagesOf,
  type Part,
  type StoredImage,
  type TextPart,
  type Turn,
} from '../conversation.js';
import { Failure } from '../failures.js';
import { type ChatJob, type JobTexts, jobTextsSchema, type LongTexts } from '../protocol/messages.js';
import { retry, retryBriefly } from '../runtime/retry.js';

/** Names the bytes of an image or of a job's texts: those of two users are apart, even if they are the same. */
export interface BlobName {
  readonly user: string;
  /** The digest of an image, in hexadecimal; of texts, the id of their chat and their digest (`textsName`). */
  readonly key: string;
}

/**
 * The bytes of images and of long texts in chunks, until they are removed or their time is over. Its connection is its
 * own: a large chunk may take longer than other commands may, and they do not wait behind it. Calls fail within ten
 * seconds while the store is down.
 */
export interface BlobStore {
  /** Keeps existing chunks for at least `ttlMs` milliseconds from now; returns their numbers, from 0. */
  extend(name: BlobName, options: { chunks: number; ttlMs: number }): Promise<ReadonlySet<number>>;
  /** Writes a chunk, or has it stay as `extend` does. */
  write(name: BlobName, chunk: { n: number; bytes: Buffer; ttlMs: number }): Promise<void>;
  /** The chunks in order; undefined for one that is not there. */
  read(name: BlobName, options: { chunks: number }): Promise<(Buffer | undefined)[]>;
  /** Removes all chunks, before their time is over. */
  remove(name: BlobName, options: { chunks: number }): Promise<void>;
  /** Removes expired chunks (nothing to do in Redis). */
  removeEnded(): Promise<void>;
}

/** Redis and PostgreSQL serve others between two chunks. */
const chunkBytes = 262_144;

/** The chunks of so many bytes. */
export const countChunks = (bytes: number): number => Math.ceil(bytes / chunkBytes);

interface NewBlob {
  bytes: Buffer;
  /** How long it stays from now on, in milliseconds; called before each command, and may throw to end the write. */
  ttlMs: () => number;
}

/** Writes the chunks that are not there yet, one after the other, and has the others stay as long. */
export async function writeBlob(store: BlobStore, name: BlobName, { bytes, ttlMs }: NewBlob): Promise<void> {
  const chunks = countChunks(bytes.length);
  const there = await store.extend(name, { chunks, ttlMs: ttlMs() });
  for (let n = 0; n < chunks; n += 1) {
    if (there.has(n)) continue;
    const chunk = bytes.subarray(n * chunkBytes, (n + 1) * chunkBytes);
    await store.write(name, { n, bytes: chunk, ttlMs: ttlMs() });
  }
}

/**
 * The turns of a user's chat, their stored images with `data`; for one call, which drops it. Throws a retryable
 * `internal` if one cannot be read: it is gone, as after a crash of PostgreSQL, or the store is down.
 */
export async function withImages(store: BlobStore, turns: readonly Turn[], user = ''): Promise<Turn[]> {
  const loaded = new Map<string, string>();
  for (const image of imagesOf(turns))
    if ('sha256' in image && !loaded.has(image.sha256))
      loaded.set(image.sha256, await readImage(store, user, image));
  const withData = <Own extends TextPart | ImagePart>(part: Own): Own =>
    'sha256' in part ? { ...part, data: loaded.get(part.sha256) } : part;
  return turns.map(({ role, content }) => ({
    role,
    content: typeof content === 'string' ? content : content.map((part) => withImagesIn(part, withData)),
  }));
}

function withImagesIn(part: Part, withData: <Own extends TextPart | ImagePart>(part: Own) => Own): Part {
  if (part.type === 'image') return withData(part);
  if (part.type !== 'tool_result' || typeof part.content === 'string') return part;
  return { ...part, content: part.content.map(withData) };
}

const readImage = async (store: BlobStore, user: string, { sha256, bytes }: StoredImage) =>
  (await readBlob(store, { user, key: sha256 }, bytes)).toString('base64');

/** Reads a blob of so many bytes. Throws a retryable `internal` if they are gone, or the store is down. */
async function readBlob(store: BlobStore, name: BlobName, bytes: number): Promise<Buffer> {
  const read = () => store.read(name, { chunks: countChunks(bytes) });
  const chunks = await retry(read, retryBriefly).catch((cause) => fail(new BlobUnreadable({ cause })));
  const blob = Buffer.concat(chunks.map((chunk) => chunk ?? fail(new BlobGone())));
  return blob.length === bytes ? blob : fail(new BlobGone());
}

/** The store has lost it, or a part of it. */
class BlobGone extends Error {
  override readonly name = 'BlobGone';
}

/** The store does not answer. */
class BlobUnreadable extends Error {
  override readonly name = 'BlobUnreadable';

  constructor(options: ErrorOptions) {
    super('An image or the texts of a job could not be read.', options);
  }
}

function fail(cause: Error): never {
  throw new Failure('internal', { retryable: true, cause });
}

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
type ParseJson = (text: Buffer) => Promise<unknown>;

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
