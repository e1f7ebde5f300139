import { computed, signal } from '@preact/signals';
import type { Fleet, FleetProvider, FleetQueue } from '../shared/contracts/fleet-contract.ts';
import { endSession } from './session/session.ts';
import { loadSession } from './session/sign-in.ts';

/** The fleet as the one event stream tells it; undefined before the first event. */
export const fleet = signal<Fleet | undefined>(undefined);

/** The state of the event stream. What is shown is as old as `newsAt` while it is not `live`. */
export const connection = signal<'connecting' | 'live' | 'reconnecting'>('connecting');

/** When there was news for the last time, in milliseconds since 1970. */
export const newsAt = signal(0);

/** Whether what is shown may no longer be true. */
export const isStale = computed(() => connection.value !== 'live');

/** Milliseconds without an event after which a stream hangs: the server sends `alive` every 1.5 s at the latest. */
const hangMs = 2500;
/** A stream that has not begun for so long is opened anew: on a slow network it takes longer to begin than to go on. */
const beginMs = 10_000;
const maxPauseMs = 5000;
const lookEveryMs = 250;
/** A look later than this shows that the page was frozen or throttled; events since then are read only now. */
const lateMs = 2000;

/** Follows the stream until the function given back is called. */
export function followFleet(): () => void {
  const stream = new FleetStream();
  return () => stream.close();
}

const events = ['snapshot', 'provider', 'queue', 'alive'];

/** The event stream, opened again with growing pauses whenever it breaks or falls silent. */
class FleetStream {
  #source: EventSource | undefined;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #failures = 0;
  #hasBegun = false;
  /** When the stream was opened, or told something for the last time, on the clock of `performance`. */
  #heardAt = 0;
  #lookedAt = performance.now();
  readonly #watch = setInterval(() => this.#look(), lookEveryMs);

  constructor() {
    this.#open();
  }

  close(): void {
    clearInterval(this.#watch);
    clearTimeout(this.#retry);
    this.#source?.close();
    connection.value = 'connecting';
  }

  #open(): void {
    const source = new EventSource('/admin/events');
    this.#source = source;
    this.#hasBegun = false;
    this.#heardAt = performance.now();
    for (const name of events)
      source.addEventListener(name, ({ data }: MessageEvent<string>) => {
        if (source !== this.#source) return;
        applyEvent(name, JSON.parse(data));
        this.#recordNews();
      });
    source.addEventListener('error', (event) => {
      if (source !== this.#source) return;
      this.#reopen();
      // The server says so at the end of a stream; an answer of 401 looks like any other error from here.
      if (event instanceof MessageEvent && JSON.parse(event.data).code === 'unauthorized') endSession();
      else void loadSession();
    });
  }

  #recordNews(): void {
    this.#failures = 0;
    this.#hasBegun = true;
    this.#heardAt = performance.now();
    newsAt.value = Date.now();
    connection.value = 'live';
  }

  /** The browser would try again after seconds, at the same pace forever, and not at all after an error's answer. */
  #reopen(): void {
    this.#source?.close();
    this.#source = undefined;
    connection.value = 'reconnecting';
    this.#failures += 1;
    const pauseMs = Math.min(250 * 2 ** this.#failures, maxPauseMs) * (0.5 + Math.random() / 2);
    this.#retry = setTimeout(() => this.#open(), pauseMs);
  }

  /** A connection that hangs, since a proxy, a process or the network does, breaks nothing: only the silence tells. */
  #look(): void {
    const now = performance.now();
    const isLate = now - this.#lookedAt > lateMs;
    this.#lookedAt = now;
    const silentMs = now - this.#heardAt;
    if (isLate || this.#source === undefined || silentMs < hangMs) return;
    connection.value = 'reconnecting';
    if (this.#hasBegun || silentMs > beginMs) this.#reopen();
  }
}

function applyEvent(name: string, data: unknown): void {
  const known = fleet.value;
  if (name === 'snapshot') fleet.value = data as Fleet;
  else if (known && name === 'queue') fleet.value = { ...known, queue: data as FleetQueue };
  else if (known && name === 'provider') {
    const changed = data as FleetProvider;
    const providers = known.providers.map((one) => (one.provider === changed.provider ? changed : one));
    fleet.value = { ...known, providers };
  }
}
