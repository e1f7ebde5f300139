import { Failure } from '../../shared/failures.js';
import { retryBriefly } from '../../shared/queue/add-attempt.js';
import { type ImageStore, writeImage } from '../../shared/queue/images.js';
import { retry } from '../../shared/runtime/retry.js';
import type { BytesInFlight } from '../access/bytes-in-flight.js';
import type { NewJob } from '../fleet-link/chat-receiver.js';
import { orUnavailable } from '../fleet-link/job-records.js';
import { type ChatCommand, clockMarginMs, throwIfLeft, type UploadedImage } from './chat-command.js';
import type { Reservation, StoredAnswers } from './stored-answers.js';

interface ImageUploadsDeps {
  images: ImageStore;
  /** The same as for stored answers. */
  room: StoredAnswers;
  bytesInFlight: Pick<BytesInFlight, 'hold'>;
  /** The clock of `keptUntil`. */
  now: () => number;
}

/** How often images whose time is over are forgotten, in milliseconds. */
const sweepMs = 10_000;

/** Stores the images of chats, each once for a user, and counts their bytes for as long as they stay. */
export class ImageUploads {
  readonly #deps: ImageUploadsDeps;
  /** The images that this process has stored, by digest and user. */
  readonly #kept = new Map<string, { readonly keptUntil: number; readonly room: Reservation }>();
  readonly #writing = new Map<string, Promise<void>>();
  #sweptAt = 0;

  constructor(deps: ImageUploadsDeps) {
    this.#deps = deps;
  }

  /**
   * Stores the uploads of a command for its job, takes them out of it, and drops their bytes in the end. A request that
   * joins a chat brings the same images, which are stored if `earlier` fails. Throws `rate_limited` where there is no
   * room, `timeout` when the caller has left or waits no longer, and `queue_unavailable`.
   */
  async store(
    command: ChatCommand,
    { deadline, firstDeltaBy = deadline }: Pick<NewJob, 'deadline' | 'firstDeltaBy'>,
    earlier?: Promise<void>,
  ): Promise<void> {
    const wasStored = await earlier?.then(() => true).catch(() => false);
    // No call begins later than its caller needs it to, by any machine's clock.
    const keptUntil = Math.min(deadline, firstDeltaBy) + clockMarginMs;
    const uploads = command.images?.splice(0) ?? [];
    if (wasStored) return;
    const total = uploads.reduce((sum, { bytes }) => sum + bytes.length, 0);
    // A request that ends frees its own bytes at once, and the store may still be taking these.
    const release = this.#deps.bytesInFlight.hold(command.user, total);
    try {
      for (const upload of uploads) await this.#storeOne(command, upload, keptUntil);
    } finally {
      release();
    }
  }

  /** One after the other: the second of two who send the same image finds it there. */
  async #storeOne(command: ChatCommand, upload: UploadedImage, keptUntil: number): Promise<void> {
    const key = `${upload.part.sha256} ${command.user}`;
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

  async #write(command: ChatCommand, { part, bytes }: UploadedImage, keptUntil: number): Promise<void> {
    const { images, now } = this.#deps;
    const { user, provider } = command;
    this.#makeRoom(`${part.sha256} ${user}`, { user, bytes: bytes.length, keptUntil });
    const ttlMs = () => {
      if (command.storeOptions === undefined) throwIfLeft(command);
      if (now() >= keptUntil) throw new Failure('timeout', { provider });
      return Math.ceil(keptUntil - now());
    };
    const write = () => writeImage(images, { user, sha256: part.sha256 }, { bytes, ttlMs });
    const shouldRetry = (error: unknown) => !(error instanceof Failure);
    await orUnavailable(retry(write, { ...retryBriefly, shouldRetry }));
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
