import { openInstruments } from '../../shared/metrics/instruments.js';
import { apiMetrics, workerMetrics } from '../../shared/metrics/metrics.js';
import { CallRecord } from '../../workers/pool/backlog.js';
import { PoolMetrics } from '../../workers/pool/pool-metrics.js';

/** Metrics for tests that do not look at them. */
export const apiInstruments = openInstruments(apiMetrics);
export const poolMetrics = new PoolMetrics(openInstruments(workerMetrics), 'openai', new CallRecord());

/** The numbers of one scrape, by name and labels as Prometheus writes them: `name{label="value"}`. */
export type Scraped = ReadonlyMap<string, number>;

/** Reads Prometheus's text format. */
export const readMetrics = (text: string): Scraped =>
  new Map(
    text
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  );
