import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import autocannon from 'autocannon';
import type { LoadErrors, LoadEvent, LoadOrder } from './load.js';
import { type ConnectionCounts, runConnection } from './load-connection.js';
import { groupsOf, type LoadGroup } from './load-groups.js';

const maxUs = 600_000_000;

/**
 * The program that sends the requests, with autocannon. One run of it covers warm-up and measuring, so that the
 * measured time begins with every connection open and busy.
 */
async function generate(order: LoadOrder): Promise<void> {
  const window = new Window(order);
  const starting = groupsOf(order).map(async (group) => {
    await delay(group.afterMs);
    return startGroup(group, order, window);
  });
  await window.pass();
  const groups = await Promise.all(starting);
  for (const { stop } of groups) stop();
  const errors = await Promise.all(groups.map((group) => group.errors));
  const { latencies, tookSeconds } = window;
  tell({
    type: 'finished',
    result: {
      answers: latencies.count,
      seconds: tookSeconds,
      ...(latencies.count > 0 && {
        p50Ms: latencies.percentile(50) / 1000,
        p99Ms: latencies.percentile(99) / 1000,
      }),
      errors: sumOf(errors),
    },
  });
}

/** Connections that send until they are stopped; their errors are known then. */
function startGroup(
  group: LoadGroup,
  order: LoadOrder,
  window: Window,
): { stop(): void; errors: Promise<LoadErrors> } {
  const counts: ConnectionCounts[] = [];
  const setupClient = (client: autocannon.Client) => {
    const { traffic, connections } = order;
    counts.push(runConnection(client, { traffic, connections, index: group.first + counts.length }));
  };
  const { promise: errors, resolve, reject } = Promise.withResolvers<LoadErrors>();
  const run = autocannon({ ...autocannonOptions(group, order), setupClient }, (error, result) => {
    if (error) reject(error);
    else resolve(errorsOf(result, counts));
  });
  run.on('response', (_client, status, _bytes, tookMs) => window.record(status, tookMs));
  return { stop: () => run.stop(), errors };
}

function autocannonOptions({ connections, origin }: LoadGroup, order: LoadOrder): autocannon.Options {
  const { warmUpSeconds, seconds, timeoutSeconds } = order;
  return {
    url: origin,
    connections,
    timeout: timeoutSeconds,
    // Never reached, because it is stopped; it looks every `sampleInt` milliseconds whether it was.
    duration: warmUpSeconds + seconds + timeoutSeconds,
    sampleInt: 100,
  };
}

/** The measured time. Latencies are kept in microseconds: autocannon's own have steps of a whole millisecond. */
class Window {
  readonly latencies: RecordableHistogram = createHistogram({ highest: maxUs, figures: 4 });
  tookSeconds = 0;
  #isOpen = false;

  constructor(private readonly order: LoadOrder) {}

  /** Opens after the warm-up; resolves when it has closed. */
  async pass(): Promise<void> {
    const { warmUpSeconds, seconds } = this.order;
    await delay(warmUpSeconds * 1000);
    const startedAt = performance.now();
    this.#isOpen = true;
    tell({ type: 'measuring' });
    await delay(seconds * 1000);
    this.#isOpen = false;
    this.tookSeconds = (performance.now() - startedAt) / 1000;
    tell({ type: 'measured' });
  }

  record(status: number, tookMs: number): void {
    if (!this.#isOpen || status !== this.order.traffic.expected.status) return;
    this.latencies.record(Math.min(maxUs, Math.max(1, Math.round(tookMs * 1000))));
  }
}

/**
 * autocannon counts timeouts among its errors, and does not count a request whose connection was closed in good order:
 * those are what is left of the requests sent, but for the one that each connection had under way at the end.
 */
function errorsOf(result: autocannon.Result, counts: readonly ConnectionCounts[]): LoadErrors {
  const answered = result['1xx'] + result['2xx'] + result['3xx'] + result['4xx'] + result['5xx'];
  return {
    wrongStatus: sumsOf(counts.map(({ wrongStatus }) => wrongStatus)),
    wrongBody: counts.reduce((sum, { wrongBody }) => sum + wrongBody, 0),
    timeouts: result.timeouts,
    socket: result.errors - result.timeouts,
    unanswered: Math.max(0, result.requests.sent - answered - result.errors - counts.length),
  };
}

function sumOf(all: readonly LoadErrors[]): LoadErrors {
  const sum = (name: 'wrongBody' | 'timeouts' | 'socket' | 'unanswered') =>
    all.reduce((total, errors) => total + errors[name], 0);
  return {
    wrongStatus: sumsOf(all.map(({ wrongStatus }) => new Map(Object.entries(wrongStatus)))),
    ...{ wrongBody: sum('wrongBody'), timeouts: sum('timeouts') },
    ...{ socket: sum('socket'), unanswered: sum('unanswered') },
  };
}

function sumsOf(all: readonly ReadonlyMap<number | string, number>[]): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const [status, count] of all.flatMap((one) => [...one])) sums[status] = (sums[status] ?? 0) + count;
  return sums;
}

function tell(event: LoadEvent): void {
  process.send?.(event);
}

// It stays after its result until the parent lets go, so that what it used can still be read.
process.once('disconnect', () => process.exit());
process.once('message', generate);
