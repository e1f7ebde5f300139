import { describe, expect, it } from 'vitest';
import { compareBacklogWithAims, summariseRow } from './results.js';

const roundOf = (empty: number, backlog: number) => ({
  empty: { perSecond: empty, storeCpuMs: 0.1 },
  backlog: { perSecond: backlog, storeCpuMs: 0.2 },
});

describe('summariseRow', () => {
  it('says how many times as long a job takes with the backlog', () => {
    const row = summariseRow('adding', [roundOf(100, 50), roundOf(120, 120), roundOf(100, 80)]);
    expect(row).toMatchObject({
      perSecond: { empty: 100, backlog: 80 },
      slowdown: { median: 1.25, least: 1, most: 2 },
      cpuRatio: { median: 2, least: 2, most: 2 },
    });
  });
});

describe('compareBacklogWithAims', () => {
  it.each([
    ['met', 90],
    ['not met', 80],
  ])('says %s', (verdict, backlog) => {
    const rows = [summariseRow('adding', [roundOf(100, backlog)])];
    const bytesPerJob = { 'without priority': 1, 'with priority': 1 };
    expect(compareBacklogWithAims({ jobs: 10, payloadBytes: 1, bytesPerJob, rows })).toMatchObject([
      { verdict },
    ]);
  });
});
