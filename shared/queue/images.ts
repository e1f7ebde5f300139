import type { Part, StoredImage, Turn } from '../conversation.js';
import { Failure } from '../failures.js';
import { retry } from '../runtime/retry.js';
import { retryBriefly } from './add-attempt.js';

/** Names the bytes of an image in the store: those of two users are apart, even if they are the same. */
export interface ImageName {
  readonly user: string;
  /** In hexadecimal. */
  readonly sha256: string;
}

/**
 * The bytes of images in chunks, until their time is over. Its connection is its own: a large chunk may take longer
 * than other commands may, and they do not wait behind it. Calls fail within ten seconds while the store is down.
 */
export interface ImageStore {
  /** Has chunks that are there stay for at least `ttlMs` milliseconds from now; returns their numbers, from 0. */
  extend(image: ImageName, options: { chunks: number; ttlMs: number }): Promise<ReadonlySet<number>>;
  /** Writes a chunk, or has it stay as `extend` does. */
  write(image: ImageName, chunk: { n: number; bytes: Buffer; ttlMs: number }): Promise<void>;
  /** The chunks in order; undefined for one that is not there. */
  read(image: ImageName, options: { chunks: number }): Promise<(Buffer | undefined)[]>;
  /** Removes expired chunks (nothing to do in Redis). */
  removeEnded(): Promise<void>;
}

/** Redis and PostgreSQL serve others between two chunks. */
const chunkBytes = 262_144;

const countChunks = (bytes: number): number => Math.ceil(bytes / chunkBytes);

interface NewImage {
  bytes: Buffer;
  /** How long it stays from now on, in milliseconds; called before each command, and may throw to end the write. */
  ttlMs: () => number;
}

/** Writes the chunks of an image that are not there yet, one after the other, and has the others stay as long. */
export async function writeImage(
  store: ImageStore,
  image: ImageName,
  { bytes, ttlMs }: NewImage,
): Promise<void> {
  const chunks = countChunks(bytes.length);
  const there = await store.extend(image, { chunks, ttlMs: ttlMs() });
  for (let n = 0; n < chunks; n += 1) {
    if (there.has(n)) continue;
    const chunk = bytes.subarray(n * chunkBytes, (n + 1) * chunkBytes);
    await store.write(image, { n, bytes: chunk, ttlMs: ttlMs() });
  }
}

const isStoredImage = (part: Part): part is StoredImage => part.type === 'image' && 'sha256' in part;

/**
 * The turns of a user's chat, their stored images with `data`; for one call, which drops it. Throws a retryable
 * `internal` if one cannot be read: it is gone, as after a crash of PostgreSQL, or the store is down.
 */
export async function withImages(store: ImageStore, turns: readonly Turn[], user = ''): Promise<Turn[]> {
  const loaded = new Map<string, string>();
  for (const image of turns.flatMap(storedImagesOf))
    if (!loaded.has(image.sha256)) loaded.set(image.sha256, await readImage(store, user, image));
  return turns.map((turn) => {
    if (typeof turn.content === 'string') return turn;
    const withData = (part: Part) =>
      isStoredImage(part) ? { ...part, data: loaded.get(part.sha256) } : part;
    return { ...turn, content: turn.content.map(withData) };
  });
}

const storedImagesOf = ({ content }: Turn): StoredImage[] =>
  typeof content === 'string' ? [] : content.filter(isStoredImage);

async function readImage(store: ImageStore, user: string, { sha256, bytes }: StoredImage): Promise<string> {
  const read = () => store.read({ user, sha256 }, { chunks: countChunks(bytes) });
  const chunks = await retry(read, retryBriefly).catch((cause) => fail(new ImageUnreadable({ cause })));
  const image = Buffer.concat(chunks.map((chunk) => chunk ?? fail(new ImageGone())));
  return image.length === bytes ? image.toString('base64') : fail(new ImageGone());
}

/** The store has lost an image, or a part of it. */
class ImageGone extends Error {
  override readonly name = 'ImageGone';
}

/** The store does not answer. */
class ImageUnreadable extends Error {
  override readonly name = 'ImageUnreadable';

  constructor(options: ErrorOptions) {
    super('An image could not be read.', options);
  }
}

function fail(cause: Error): never {
  throw new Failure('internal', { retryable: true, cause });
}
