import { Failure } from '../../shared/failures.js';
import { Tally } from '../../shared/runtime/semaphore.js';

/** An answer or an image that a user keeps in the store for a time. */
interface StoredBytes {
  /** Id of the chat's owner. */
  user: string;
  /** The size that is reserved until that of the answer is known. */
  bytes: number;
  /** The size of what is written beside the answer, for as long; absent means nothing. */
  besideBytes?: number;
  /** When its record ends, in milliseconds since the epoch. */
  keptUntil: number;
}

/** The bytes that are reserved for one answer. */
export interface Reservation {
  /** Call it with the bytes of the answer, as it is written, once they are known; it is kept if they are more. */
  resize: (bytes: number) => void;
  /** Call it if the chat is not stored after all. */
  release: () => void;
}

/** For one user and in all, at each API process: this bounds what Redis holds beside the queue. */
const maxBytesPerUser = 67_108_864;
const maxBytesInAll = 536_870_912;
/** The least that a stored chat counts, for the keys of its records and the store's own share. */
const minBytes = 1024;
/** Records that end within the same slice of this length are released together, at its end. */
const sliceMs = 10_000;

/** Room for stored answers and images until their records end; while a chat runs, for an answer of the usual length. */
export class StoredAnswers {
  readonly #now: () => number;
  readonly #reserved = new Tally();
  /** The bytes of each user, by the end of the slice of time in which their records end. */
  readonly #byEnd = new Map<number, Map<string, number>>();

  /** `now` is the clock of `keptUntil`. */
  constructor(now: () => number) {
    this.#now = now;
  }

  reserve({ user, bytes: usual, besideBytes = 0, keptUntil }: StoredBytes): Reservation {
    this.#releaseEnded();
    const bytesWith = (answer: number) => Math.max(answer + besideBytes, minBytes);
    const most = bytesWith(usual);
    const reserved = this.#reserved;
    if (reserved.of(user) + most > maxBytesPerUser || reserved.total + most > maxBytesInAll)
      throw new Failure('rate_limited', { detail, retryAfterMs: this.#untilNextEndMs() });
    const end = Math.ceil(keptUntil / sliceMs) * sliceMs;
    const ending = this.#byEnd.get(end) ?? new Map<string, number>();
    this.#byEnd.set(end, ending);
    let bytes = 0;
    const resize = (to: number) => {
      // All of the slice was released when its records ended.
      if (this.#byEnd.get(end) !== ending) return;
      ending.set(user, (ending.get(user) ?? 0) + to - bytes);
      reserved.add(user, to - bytes);
      bytes = to;
    };
    resize(most);
    return { resize: (answer) => resize(bytesWith(answer)), release: () => resize(0) };
  }

  /** Slices are added in about the order of their ends. */
  #untilNextEndMs(): number {
    const [next = this.#now()] = this.#byEnd.keys();
    return Math.max(sliceMs, next - this.#now());
  }

  #releaseEnded(): void {
    const now = this.#now();
    for (const [end, ending] of this.#byEnd) {
      if (end > now) continue;
      this.#byEnd.delete(end);
      for (const [user, bytes] of ending) this.#reserved.add(user, -bytes);
    }
  }
}

const detail = 'There is no room to store another answer or image until records of earlier chats expire.';
