import { createHistogram } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import autocannon from 'autocannon';
import type { LoadOrder, Traffic } from './load.js';

const timeoutSeconds = 10;
const maxUs = 600_000_000;
/** Of so many answers one is read: to read each would slow down who measures. */
const sample = 50;

/**
 * The program that sends the requests, with autocannon. One run of it covers warm-up and measuring, so that the
 * measured time begins with every connection open and busy. Latencies are in microseconds: autocannon's own have steps
 * of a whole millisecond.
 */
async function generate({ traffic, connections, warmUpSeconds, seconds }: LoadOrder): Promise<void> {
  const { origin, expected, status: good = 200 } = traffic;
  const latencies = createHistogram({ highest: maxUs, figures: 4 });
  const { promise: finished, resolve, reject } = Promise.withResolvers<autocannon.Result>();
  let isOpen = false;
  let looks = 0;
  const options: autocannon.Options = {
    ...{ url: origin, connections, timeout: timeoutSeconds, sampleInt: 100 },
    // Never reached, because it is stopped.
    duration: warmUpSeconds + seconds + timeoutSeconds,
    requests: [{ setupRequest: (request) => ({ ...request, ...requestOf(traffic) }) }],
    verifyBody: (body) => ++looks % sample !== 0 || isExpected(String(body), expected),
  };
  const run = autocannon(options, (error, result) => (error ? reject(error) : resolve(result)));
  run.on('response', (_client, status, _bytes, tookMs) => {
    if (!isOpen || status !== good) return;
    latencies.record(Math.min(maxUs, Math.max(1, Math.round(tookMs * 1000))));
  });
  await delay(warmUpSeconds * 1000);
  const startedAt = performance.now();
  isOpen = true;
  process.send?.('measuring');
  await delay(seconds * 1000);
  isOpen = false;
  const tookSeconds = (performance.now() - startedAt) / 1000;
  process.send?.('measured');
  run.stop();
  const { errors, mismatches, statusCodeStats = {} } = await finished;
  const other = Object.entries(statusCodeStats).filter(([status]) => Number(status) !== good);
  const [answers, ms] = [latencies.count, (share: number) => latencies.percentile(share) / 1000];
  process.send?.({
    ...{ answers, perSecond: answers / tookSeconds, p50Ms: ms(50), p99Ms: ms(99) },
    errors: other.reduce((sum, [, { count = 0 }]) => sum + count, errors + mismatches * sample),
  });
}

function requestOf({ method, headers = {}, paths, bodies = [] }: Traffic): autocannon.Request {
  const unique = () => `${process.pid}-${process.hrtime.bigint()}`;
  const filled = (text: string) => text.replaceAll('{unique}', unique);
  const [path = '/', body] = [paths, bodies].map((all) => all[Math.floor(Math.random() * all.length)]);
  const entries = Object.entries(headers).map(([name, value]) => [name, filled(value)]);
  return {
    method: method ?? 'GET',
    path,
    headers: Object.fromEntries(entries),
    ...(body && { body: filled(body) }),
  };
}

function isExpected(text: string, expected: Traffic['expected']): boolean {
  if (expected === 'page') return text.startsWith('<!doctype html>');
  try {
    const items: object[] = [JSON.parse(text)].flat();
    return items.length > 0 && items.every((item) => expected.every((field) => field in item));
  } catch {
    return false;
  }
}

// It stays after its result until the parent lets go, so that what it used can still be read.
process.once('disconnect', () => process.exit());
process.once('message', generate);
