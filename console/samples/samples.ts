import { signal } from '@preact/signals';
import type { Sample, Samples } from '../../shared/history.ts';
import { call } from '../api.ts';
import { onEvent } from '../store.ts';

/** Ten minutes of one every five seconds. */
const maxSamples = 120;

/** The samples with one more, in its place if that was there already. */
export function addSample(before: readonly Sample[], sample: Sample): readonly Sample[] {
  const others = before.filter(({ at }) => at !== sample.at);
  return [...others, sample].sort((a, b) => (a.at < b.at ? -1 : 1)).slice(-maxSamples);
}

/** What a line was over ten minutes: its last value, its highest, its mean. Undefined without any. */
export function summaryOf(
  values: readonly (number | null)[],
): { last: number | null; max: number; mean: number } | undefined {
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return undefined;
  const mean = known.reduce((sum, value) => sum + value, 0) / known.length;
  return { last: values.at(-1) ?? null, max: Math.max(...known), mean };
}

/** The last ten minutes of a provider, read once and then followed, until `stop`. */
export class FollowedSamples {
  readonly samples = signal<readonly Sample[]>([]);
  readonly error = signal<unknown>(undefined);
  readonly #provider: string;
  readonly #stopping = new AbortController();
  readonly #ends: (() => void)[];

  constructor(provider: string) {
    this.#provider = provider;
    this.#ends = [
      onEvent('sample', (data) => this.#onSample(data as Sample)),
      // After a break.
      onEvent('snapshot', () => void this.#read()),
    ];
    void this.#read();
  }

  stop(): void {
    this.#stopping.abort();
    for (const end of this.#ends) end();
  }

  async #read(): Promise<void> {
    const { signal } = this.#stopping;
    const path = `/admin/samples?provider=${encodeURIComponent(this.#provider)}`;
    try {
      const { body } = await call<Samples>(path, { signal });
      this.samples.value = body.samples.slice(-maxSamples);
      this.error.value = undefined;
    } catch (error) {
      if (!signal.aborted) this.error.value = error;
    }
  }

  #onSample(sample: Sample): void {
    if (sample.provider === this.#provider) this.samples.value = addSample(this.samples.value, sample);
  }
}
