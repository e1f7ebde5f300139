import { Failure } from '../../shared/failures.js';
import {
  type BlobName,
  type BlobStore,
  nameOfTexts,
  removeTexts,
  writeBlob,
} from '../../shared/queue/blobs.js';
import { retry, retryBriefly } from '../../shared/runtime/retry.js';
import type { BytesInFlight } from '../access/bytes-in-flight.js';
import type { NewJob } from '../fleet-link/chat-receiver.js';
import { orUnavailable } from '../fleet-link/job-records.js';
import { type ChatCommand, clockMarginMs, throwIfLeft } from './chat-command.js';
import type { LiveChat } from './live-chat.js';
import type { Reservation, StoredAnswers } from './stored-answers.js';

interface UploadsDeps {
  blobs: BlobStore;
  /** For images; the same as for stored answers. */
  room: StoredAnswers;
  bytesInFlight: Pick<BytesInFlight, 'hold'>;
  /** The clock of `keptUntil`. */
  now: () => number;
}

/** How often images whose time is over are forgotten, in milliseconds. */
const sweepMs = 10_000;

/** A blob to be stored. Texts need no room beside the queue: their chat counts them, and they leave when it ends. */
interface Upload {
  readonly name: BlobName;
  readonly bytes: Buffer;
  readonly needsRoom: boolean;
}

interface Storing extends Pick<NewJob, 'deadline' | 'firstDeltaBy'> {
  readonly chatId: string;
  /** The uploads of a request that the chat had before. */
  readonly earlier?: Promise<void> | undefined;
}

/**
 * Stores what lies beside the jobs of chats: images, each once for a user, whose bytes count for as long as they stay,
 * and long texts.
 */
export class Uploads {
  readonly #deps: UploadsDeps;
  /** The images that this process has stored, by digest and user. */
  readonly #kept = new Map<string, { readonly keptUntil: number; readonly room: Reservation }>();
  readonly #writing = new Map<string, Promise<void>>();
  #sweptAt = 0;

  constructor(deps: UploadsDeps) {
    this.#deps = deps;
  }

  /**
   * Stores the uploads of a command for its job, takes them out of it, and drops their bytes in the end. A request that
   * joins a chat brings the same ones, which are stored if `earlier` fails. Throws `rate_limited` where there is no
   * room, `timeout` when the caller has left or waits no longer, and `queue_unavailable`.
   */
  async store(
    command: ChatCommand,
    { deadline, firstDeltaBy = deadline, chatId, earlier }: Storing,
  ): Promise<void> {
    const wasStored = await earlier?.then(() => true).catch(() => false);
    // No call begins later than its caller needs it to, by any machine's clock.
    const keptUntil = Math.min(deadline, firstDeltaBy) + clockMarginMs;
    const uploads = takeUploads(command, chatId);
    if (wasStored) return;
    const total = uploads.reduce((sum, { bytes, needsRoom }) => sum + (needsRoom ? bytes.length : 0), 0);
    // A request that ends frees its own bytes at once, and the store may still be taking these.
    const release = this.#deps.bytesInFlight.hold(command.user, total);
    try {
      for (const upload of uploads) await this.#storeOne(command, upload, keptUntil);
    } finally {
      release();
    }
  }

  /** One after the other: the second of two who send the same image finds it there. */
  async #storeOne(command: ChatCommand, upload: Upload, keptUntil: number): Promise<void> {
    const key = keyOf(upload.name);
    const before = this.#writing.get(key) ?? Promise.resolve();
    const writing: Promise<void> = before
      .catch(() => undefined)
      .then(() => this.#write(command, upload, keptUntil))
      .finally(() => {
        if (this.#writing.get(key) === writing) this.#writing.delete(key);
      });
    this.#writing.set(key, writing);
    await writing;
  }

  async #write(command: ChatCommand, { name, bytes, needsRoom }: Upload, keptUntil: number): Promise<void> {
    const { blobs, now } = this.#deps;
    const { user, provider } = command;
    if (needsRoom) this.#makeRoom(keyOf(name), { user, bytes: bytes.length, keptUntil });
    const ttlMs = () => {
      if (command.storeOptions === undefined) throwIfLeft(command);
      if (now() >= keptUntil) throw new Failure('timeout', { provider });
      return Math.ceil(keptUntil - now());
    };
    const write = () => writeBlob(blobs, name, { bytes, ttlMs });
    const shouldRetry = (error: unknown) => !(error instanceof Failure);
    await orUnavailable(retry(write, { ...retryBriefly, shouldRetry }));
  }

  /**
   * Removes the texts of a chat that no other process can ask for, once none of their chunks is on its way; never
   * throws. If the store is down, their time removes them.
   */
  removeTexts({ id, opening, storing }: LiveChat): void {
    if (opening === undefined) return;
    const { user, written } = opening.command;
    if (!('bytes' in written.texts)) return;
    const texts = { sha256: written.texts.sha256, bytes: written.texts.size };
    void Promise.resolve(storing)
      .catch(() => undefined)
      .then(() => removeTexts(this.#deps.blobs, { id, data: { user, texts } }))
      .catch(() => undefined);
  }

  /** An image that stays for longer anyway needs no more room; its own room is free for it again. */
  #makeRoom(key: string, image: { user: string; bytes: number; keptUntil: number }): void {
    this.#sweep();
    const kept = this.#kept.get(key);
    if (kept && kept.keptUntil >= image.keptUntil) return;
    kept?.room.release();
    this.#kept.delete(key);
    const room = this.#deps.room.reserve(image);
    this.#kept.set(key, { keptUntil: image.keptUntil, room });
  }

  #sweep(): void {
    const now = this.#deps.now();
    if (now < this.#sweptAt + sweepMs) return;
    this.#sweptAt = now;
    for (const [key, { keptUntil }] of this.#kept) if (keptUntil <= now) this.#kept.delete(key);
  }
}

const keyOf = ({ user, key }: BlobName): string => `${key} ${user}`;

/** Whether there is something of the command to be stored beside its job. */
export const hasUploads = ({ images = [], written }: ChatCommand): boolean =>
  images.length > 0 || 'bytes' in written.texts;

function takeUploads(command: ChatCommand, chatId: string): Upload[] {
  const { user, written } = command;
  const images = command.images?.splice(0) ?? [];
  const uploads = images.map(({ part, bytes }) => ({
    name: { user, key: part.sha256 },
    bytes,
    needsRoom: true,
  }));
  const { texts } = written;
  if (!('bytes' in texts) || texts.bytes.length === 0) return uploads;
  const bytes = Buffer.from(texts.bytes.buffer, texts.bytes.byteOffset, texts.size);
  command.written = { ...written, texts: { ...texts, bytes: new Uint8Array() } };
  return [...uploads, { name: nameOfTexts({ id: chatId, user }, texts), bytes, needsRoom: false }];
}
