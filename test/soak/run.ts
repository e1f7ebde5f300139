import { setTimeout as delay } from 'node:timers/promises';
import type { Lifecycle } from '../../shared/runtime/lifecycle.js';
import type { Log } from '../../shared/runtime/log.js';
import type { RunningStore } from '../bench/store.js';
import { Books } from './books.js';
import { type Gauges, openGauges } from './gauges.js';
import { sendLoad } from './load.js';
import type { Options } from './options.js';
import { openSampler, type Sample, sampleUntil } from './samples.js';
import { openService, type Service } from './service.js';
import { isQuiet, type Soak } from './verdicts.js';

interface RunDeps {
  options: Options;
  perSecond: number;
  store: RunningStore;
  lifecycle: Lifecycle;
  /** Folder for them. */
  logs: string;
  log: Log;
  onSample(sample: Sample): void;
}

/** Starts everything, sends the load, and waits for the quiet after it. */
export async function runSoak(deps: RunDeps): Promise<Soak> {
  const { options, store, lifecycle, logs, log, onSample } = deps;
  const service = await openService({ store, concurrency: options.concurrency, lifecycle, dir: logs });
  const books = new Books();
  const readGauges = await openGauges({ store, service, books, lifecycle, log });
  const take = openSampler({ store, service, readGauges, lifecycle });
  const before = await readGauges();
  const samples: Sample[] = [];
  const note = (sample: Sample) => {
    samples.push(sample);
    onSample(sample);
  };
  const loaded = new AbortController();
  const until = AbortSignal.any([loaded.signal, lifecycle.stopping]);
  const [deaths] = await Promise.race([
    Promise.all([
      killNowAndThen(service, options.minutes, lifecycle.stopping),
      load(deps, service, books).finally(() => loaded.abort()),
      sampleUntil(until, take, note),
    ]),
    service.failed,
  ]);
  return { minutes: options.minutes, books, samples, deaths, before, ...(await rest(before, readGauges)) };
}

/** In ten seconds of load there is far more under way than there ever should be. */
const maxSecondsInFlight = 10;

const load = (
  { options, perSecond, lifecycle }: RunDeps,
  { chatUrl }: Service,
  books: Books,
): Promise<void> =>
  sendLoad({
    chatUrl,
    perSecond,
    minutes: options.minutes,
    maxInFlight: maxSecondsInFlight * perSecond,
    books,
    signal: lifecycle.stopping,
  });

/** How long after the last answer things may take to come to rest. */
const restWithinMs = 5000;
const betweenLooksMs = 100;

/** Waits until nothing is under way, for a few seconds at most. */
async function rest(
  before: Gauges,
  readGauges: () => Promise<Gauges>,
): Promise<Pick<Soak, 'after' | 'quietAfterMs'>> {
  const startedAt = performance.now();
  for (;;) {
    const after = await readGauges();
    const quietAfterMs = performance.now() - startedAt;
    if (isQuiet(before, after) || quietAfterMs > restWithinMs) return { after, quietAfterMs };
    await delay(betweenLooksMs);
  }
}

const maxBetweenMs = 5 * 60_000;
/** What the first death has cut off must be done before the next: a job that was cut off twice is given up. */
const minBetweenMs = 30_000;
const deadForMs = 5000;

/** Kills the second worker every five minutes, in a short soak once or twice, and revives it; gives how often it died. */
async function killNowAndThen(service: Service, minutes: number, signal: AbortSignal): Promise<number> {
  const betweenMs = Math.max(minBetweenMs, Math.min(maxBetweenMs, (minutes * 60_000) / 3));
  const times = Math.max(1, Math.round((minutes * 60_000) / betweenMs) - 1);
  for (let deaths = 0; deaths < times; deaths += 1) {
    await delay(betweenMs - deadForMs, undefined, { signal });
    await service.killMortal();
    await delay(deadForMs, undefined, { signal });
    await service.reviveMortal();
  }
  return times;
}
