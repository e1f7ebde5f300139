import { signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { call } from '../api.ts';
import { onEvent } from '../store.ts';

interface Source<T, E> {
  /** Where the API tells the whole of it. */
  readonly path: string;
  /** The name of the events that go on with it. */
  readonly event: string;
  /** The names of those after which it is read again, since some may have been missed. */
  readonly again: readonly string[];
  /** The value after an event, which may be in it already. */
  add(known: T, event: E): T;
}

/** Something that is read once and then followed by the events of the stream. */
export class Followed<T, E> {
  /** Undefined before it was read. */
  readonly known = signal<T | undefined>(undefined);
  readonly error = signal<unknown>(undefined);
  readonly #source: Source<T, E>;
  #isReading = false;
  /** Whether something was missed that the read under way may not tell. */
  #isDue = false;
  /** The events during a read, oldest first: its answer may be older. */
  #meanwhile: E[] = [];

  constructor(source: Source<T, E>) {
    this.#source = source;
  }

  /** Reads it and follows it until the function given back is called. */
  follow(): () => void {
    const stopping = new AbortController();
    const read = () => void this.#read(stopping.signal);
    const ends = [
      onEvent(this.#source.event, (event) => this.#add(event as E)),
      ...this.#source.again.map((name) => onEvent(name, read)),
    ];
    read();
    return () => {
      stopping.abort();
      for (const end of ends) end();
    };
  }

  /** Reads it, once more if it is being read already. */
  async #read(signal: AbortSignal): Promise<void> {
    this.#isDue = true;
    if (this.#isReading) return;
    this.#isReading = true;
    while (this.#isDue && !signal.aborted) {
      this.#isDue = false;
      await this.#readOnce(signal);
    }
    this.#isReading = false;
  }

  async #readOnce(signal: AbortSignal): Promise<void> {
    this.#meanwhile = [];
    try {
      const { body } = await call<T>(this.#source.path, { signal });
      this.known.value = this.#meanwhile.reduce(this.#source.add, body);
      this.error.value = undefined;
    } catch (error) {
      if (!signal.aborted) this.error.value = error;
    }
  }

  #add(event: E): void {
    if (this.#isReading) this.#meanwhile.push(event);
    if (this.known.value !== undefined) this.known.value = this.#source.add(this.known.value, event);
  }
}

/** Follows it while it is shown; `open` gives another one when one of `inputs` has changed. */
export function useFollowed<T, E>(open: () => Followed<T, E>, inputs: readonly unknown[]): Followed<T, E> {
  const followed = useMemo(open, inputs);
  useEffect(() => followed.follow(), [followed]);
  return followed;
}
