import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import autocannon from 'autocannon';
import type { LoadErrors, LoadEvent, LoadOrder } from './load.js';
import { type ConnectionCounts, runConnection } from './load-connection.js';

const maxUs = 600_000_000;

/**
 * The program that sends the requests, with autocannon. One run of it covers warm-up and measuring, so that the
 * measured time begins with every connection open and busy.
 */
function generate(order: LoadOrder): void {
  const window = new Window(order);
  const counts: ConnectionCounts[] = [];
  const setupClient = (client: autocannon.Client) => {
    const { traffic, connections } = order;
    counts.push(runConnection(client, { traffic, connections, index: counts.length }));
  };
  const run = autocannon({ ...autocannonOptions(order), setupClient }, (error, result) => {
    if (error) throw error;
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
        errors: errorsOf(result, counts),
      },
    });
  });
  run.on('response', (_client, status, _bytes, tookMs) => window.record(status, tookMs));
  window.open(() => run.stop());
}

function autocannonOptions(order: LoadOrder): autocannon.Options {
  const { traffic, connections, warmUpSeconds, seconds, timeoutSeconds } = order;
  return {
    url: traffic.origin,
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

  /** Opens after the warm-up, and calls back when it has closed. */
  open(onClosed: () => void): void {
    const { warmUpSeconds, seconds } = this.order;
    setTimeout(() => {
      const startedAt = performance.now();
      this.#isOpen = true;
      tell({ type: 'measuring' });
      setTimeout(() => {
        this.#isOpen = false;
        this.tookSeconds = (performance.now() - startedAt) / 1000;
        tell({ type: 'measured' });
        onClosed();
      }, seconds * 1000);
    }, warmUpSeconds * 1000);
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

function sumsOf(all: readonly ReadonlyMap<number, number>[]): Record<string, number> {
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
