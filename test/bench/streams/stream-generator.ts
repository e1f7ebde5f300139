import { Agent, type IncomingMessage, request } from 'node:http';
import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import type { LoadEvent } from '../load.js';
import type { StreamOrder, StreamResult, Times } from './stream-load.js';
import { StreamReader } from './stream-reader.js';

const maxUs = 600_000_000;

/** The program that reads streams, as many at once as its order says, one after the other at each client. */
class StreamGenerator {
  readonly #order: StreamOrder;
  readonly #agent: Agent;
  readonly #first = createHistogram({ highest: maxUs, figures: 4 });
  readonly #delay = createHistogram({ highest: maxUs, figures: 4 });
  readonly #flaws: Record<string, number> = {};
  #isMeasuring = false;
  #isOver = false;
  #streams = 0;
  #whole = 0;
  #deltas = 0;
  #events = 0;
  #late = 0;

  constructor(order: StreamOrder) {
    this.#order = order;
    this.#agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
  }

  async run(): Promise<StreamResult> {
    const { streams, streamMs, seconds } = this.#order;
    const clients = Array.from({ length: streams }, (_, n) => this.#readOn((n * streamMs) / streams));
    await delay(2 * streamMs);
    tell({ type: 'measuring' });
    this.#isMeasuring = true;
    await delay(seconds * 1000);
    this.#isMeasuring = false;
    tell({ type: 'measured' });
    this.#isOver = true;
    await Promise.all(clients);
    this.#agent.destroy();
    return {
      ...{ streams: this.#streams, whole: this.#whole, flaws: this.#flaws },
      ...{ deltas: this.#deltas, events: this.#events },
      lateShare: this.#late / this.#delay.count,
      first: timesOf(this.#first),
      delay: timesOf(this.#delay),
    };
  }

  async #readOn(afterMs: number): Promise<void> {
    await delay(afterMs);
    while (!this.#isOver) {
      const flaw = await this.#readOne().catch((error: Error) => error.message);
      this.#streams += 1;
      if (flaw === undefined) this.#whole += 1;
      else this.#flaws[flaw] = (this.#flaws[flaw] ?? 0) + 1;
    }
  }

  /** What is wrong with the stream; undefined when nothing is. */
  async #readOne(): Promise<string | undefined> {
    const { url, headers, body, deltas } = this.#order;
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const startedAt = now();
    request(url, { method: 'POST', headers, agent: this.#agent }, resolve).on('error', reject).end(body);
    const response = await promise;
    const reader = new StreamReader();
    let isFirst = true;
    for await (const piece of response.setEncoding('utf8') as AsyncIterable<string>) {
      const arrivedAt = now();
      const eventsBefore = reader.events;
      for (const sentAt of reader.add(piece)) {
        this.#record(isFirst ? { firstMs: arrivedAt - startedAt } : { delayMs: arrivedAt - sentAt });
        isFirst = false;
      }
      if (this.#isMeasuring) this.#events += reader.events - eventsBefore;
    }
    return response.statusCode === 200 ? reader.flaw(deltas) : `status ${response.statusCode}`;
  }

  #record({ firstMs, delayMs }: { firstMs?: number; delayMs?: number }): void {
    if (!this.#isMeasuring) return;
    this.#deltas += 1;
    if (firstMs !== undefined) this.#first.record(toUs(firstMs));
    if (delayMs === undefined) return;
    this.#delay.record(toUs(delayMs));
    if (delayMs > this.#order.lateMs) this.#late += 1;
  }
}

/** The clock of the simulator's timestamps, in milliseconds since the epoch. */
const now = (): number => performance.timeOrigin + performance.now();

const toUs = (ms: number): number => Math.min(maxUs, Math.max(1, Math.round(ms * 1000)));

const timesOf = (histogram: RecordableHistogram): Times => ({
  count: histogram.count,
  p50: histogram.count > 0 ? histogram.percentile(50) / 1000 : Number.NaN,
  p99: histogram.count > 0 ? histogram.percentile(99) / 1000 : Number.NaN,
});

function tell(event: LoadEvent<StreamResult>): void {
  process.send?.(event);
}

// It stays after its result until the parent lets go, so that what it used can still be read.
process.once('disconnect', () => process.exit());
process.once('message', async (order: StreamOrder) => {
  tell({ type: 'finished', result: await new StreamGenerator(order).run() });
});
