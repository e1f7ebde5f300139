import { computed, signal } from '@preact/signals';
import type { Fleet, FleetProvider, FleetQueue } from '../shared/fleet.ts';
import { call } from './api.ts';
import { loadSession } from './session/sign-in.ts';

/** The fleet as the one event stream tells it; undefined before the first event. */
export const fleet = signal<Fleet | undefined>(undefined);

/** Of the stream. What is shown is as old as `newsAt` while it is not `live`. */
export const connection = signal<'connecting' | 'live' | 'reconnecting'>('connecting');

/** When there was news for the last time, in milliseconds since 1970. */
export const newsAt = signal(0);

/** Whether what is shown may no longer be true. */
export const isStale = computed(() => connection.value !== 'live');

/** Milliseconds without an event after which the server is asked, and how long it has to answer. */
const quietMs = 1500;
const answerMs = 1000;
const maxPauseMs = 5000;
/** Milliseconds without an event after which the stream itself hangs, whatever the server answers: it tells samples every five seconds. */
const hangMs = 15_000;

type Listener = (data: unknown) => void;
const listeners = new Map<string, Set<Listener>>();

/** Calls back with the parsed data of each event of this name, such as `request`; the function given back ends it. */
export function onEvent(name: string, listener: Listener): () => void {
  const those = listeners.get(name) ?? new Set();
  listeners.set(name, those.add(listener));
  return () => void those.delete(listener);
}

/** Follows the stream until the function given back is called. */
export function followFleet(): () => void {
  const stream = new FleetStream();
  return () => stream.close();
}

/** What `include` asks for beside the fleet itself. */
const address = '/admin/events?include=requests,samples';
const events = ['snapshot', 'provider', 'queue', 'request', 'missed', 'sample'];

/** The event stream, opened again with growing pauses whenever it breaks or falls silent. */
class FleetStream {
  #source: EventSource | undefined;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #isAsking = false;
  #failures = 0;
  /** When the stream was opened, or told something for the last time. */
  #streamAt = 0;
  readonly #watch = setInterval(() => this.#look(), 500);

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
    const source = new EventSource(address);
    this.#source = source;
    this.#streamAt = Date.now();
    for (const name of events)
      source.addEventListener(name, ({ data }: MessageEvent<string>) => {
        const parsed: unknown = JSON.parse(data);
        applyEvent(name, parsed);
        this.#streamAt = Date.now();
        this.#recordNews();
        for (const listener of listeners.get(name) ?? []) listener(parsed);
      });
    source.addEventListener('error', () => this.#reopen());
  }

  #recordNews(): void {
    this.#failures = 0;
    newsAt.value = Date.now();
    if (this.#source) connection.value = 'live';
  }

  /** The browser would try again after seconds, at the same pace forever, and not at all after an error's answer. */
  #reopen(): void {
    if (this.#source === undefined) return;
    this.#source.close();
    this.#source = undefined;
    connection.value = 'reconnecting';
    this.#failures += 1;
    // An answer of 401 looks like any other error from here.
    void loadSession();
    const pauseMs = Math.min(250 * 2 ** this.#failures, maxPauseMs) * (0.5 + Math.random() / 2);
    this.#retry = setTimeout(() => this.#open(), pauseMs);
  }

  #look(): void {
    if (Date.now() - this.#streamAt > hangMs) this.#reopen();
    void this.#askWhenQuiet();
  }

  /** Nothing is sent while nothing changes, and a connection that hangs looks the same. */
  async #askWhenQuiet(): Promise<void> {
    const isQuiet = Date.now() - newsAt.value > quietMs;
    if (!isQuiet || this.#isAsking || !this.#source || document.hidden || !fleet.value) return;
    this.#isAsking = true;
    try {
      const signal = AbortSignal.timeout(answerMs);
      fleet.value = (await call<Fleet>('/admin/pools', { signal })).body;
      this.#recordNews();
    } catch {
      this.#reopen();
    } finally {
      this.#isAsking = false;
    }
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
