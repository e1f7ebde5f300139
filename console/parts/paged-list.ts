import { signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { call } from '../api.ts';

interface Page<T> {
  data: T[];
  next: string | null;
}

/** The address of a page; `from` is the `next` of the one before. */
type AddressOf = (from: string | undefined) => string;

/** A list that is read page by page. */
export class PagedList<T> {
  /** Undefined before the first page was read. */
  readonly rows = signal<readonly T[] | undefined>(undefined);
  readonly next = signal<string | null>(null);
  readonly error = signal<unknown>(undefined);
  readonly isLoading = signal(false);
  readonly #addressOf: AddressOf;
  #reading = new AbortController();

  constructor(addressOf: AddressOf) {
    this.#addressOf = addressOf;
  }

  /** Reads it from the beginning; what is there stays until then. */
  async load(): Promise<void> {
    await this.#read(undefined);
  }

  async more(): Promise<void> {
    if (this.next.value !== null) await this.#read(this.next.value);
  }

  close(): void {
    this.#reading.abort();
  }

  async #read(from: string | undefined): Promise<void> {
    this.#reading.abort();
    this.#reading = new AbortController();
    const { signal } = this.#reading;
    this.isLoading.value = true;
    this.error.value = undefined;
    try {
      const { body } = await call<Page<T>>(this.#addressOf(from), { signal });
      if (signal.aborted) return;
      this.rows.value = from === undefined ? body.data : [...(this.rows.value ?? []), ...body.data];
      this.next.value = body.next;
    } catch (error) {
      if (!signal.aborted) this.error.value = error;
    } finally {
      if (!signal.aborted) this.isLoading.value = false;
    }
  }
}

/** A list that is read when it is shown, and another one when one of `inputs` has changed. */
export function usePagedList<T>(addressOf: AddressOf, inputs: readonly unknown[]): PagedList<T> {
  const list = useMemo(() => new PagedList<T>(addressOf), inputs);
  useEffect(() => {
    void list.load();
    return () => list.close();
  }, [list]);
  return list;
}

/** Shows a view again with what the form of its filter says, when that is submitted. */
export function showFiltered(event: SubmitEvent, view: string): void {
  event.preventDefault();
  const fields = [...new FormData(event.currentTarget as HTMLFormElement)];
  location.hash = addressOf(
    `/${view}`,
    Object.fromEntries(fields.map(([name, value]) => [name, String(value).trim()])),
  );
}

/** The path with those parameters that have a value. */
export function addressOf(path: string, parameters: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(parameters).filter((pair): pair is [string, string] => Boolean(pair[1]));
  const query = new URLSearchParams(given).toString();
  return query === '' ? path : `${path}?${query}`;
}
