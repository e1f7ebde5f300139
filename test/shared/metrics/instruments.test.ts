import { beforeEach, describe, expect, it } from 'vitest';
import { type Instruments, openInstruments } from '../../../shared/metrics/instruments.js';
import { readMetrics } from '../../support/metrics.js';

const table = {
  answers: {
    name: 'answers_total',
    type: 'counter',
    help: 'Answers.',
    labels: { to: ['a', 'b'], how: ['x', 'y'] },
  },
  depth: { name: 'depth', type: 'gauge', help: 'Depth.', labels: { of: ['a', 'b'] } },
  took: {
    name: 'took_seconds',
    type: 'histogram',
    help: 'Time.',
    labels: { to: ['a', 'b'] },
    buckets: [0.1, 1],
  },
} as const;

let instruments: Instruments<typeof table>;
beforeEach(() => {
  instruments = openInstruments(table);
});
const ours = async () => Object.fromEntries(readMetrics((await instruments.scrape()).text));

describe('openInstruments', () => {
  it('starts what was not counted at zero, but no gauges, for those labels alone that are named', async () => {
    instruments.metrics.answers.inc({ to: 'b', how: 'x' }, 2);
    instruments.startAtZero({ to: 'b' });
    const series = await ours();
    expect(Object.keys(series).filter((name) => name.startsWith('answers'))).toEqual([
      'answers_total{to="b",how="x"}',
      'answers_total{to="b",how="y"}',
    ]);
    expect(series['answers_total{to="b",how="x"}']).toBe(2);
    expect(series['took_seconds_count{to="b"}']).toBe(0);
    expect(Object.keys(series).some((name) => /depth|"a"/.test(name))).toBe(false);
  });

  it('refreshes before every scrape', async () => {
    let asked = 0;
    instruments.onScrape(async () => instruments.metrics.depth.set({ of: 'a' }, ++asked));
    expect(await ours()).toEqual({ 'depth{of="a"}': 1 });
    expect(await ours()).toEqual({ 'depth{of="a"}': 2 });
  });
});
