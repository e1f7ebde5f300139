import { describe, expect, it } from 'vitest';
import type { RowResult } from './chat.js';
import { judgeRows, recordOf } from './guard.js';
import type { PeerResults } from './report.js';

const ratio = (median: number) => ({ median, least: median / 2, most: 2 * median });
const side = (errors: number) => ({ answers: 1, errors, perSecond: 1, cpuMs: {}, peakBytes: {} });

const rowOf = (ratios: RowResult['ratios'], errors = 0): RowResult => ({
  ...{ latencyMs: 0, connections: 32, rounds: [], ratios },
  bySide: { quillgate: side(errors), portkey: side(0), simulator: side(0) },
});

const measured = (perSecond: number, productCpuMs: number): RowResult =>
  rowOf({ perSecond: ratio(perSecond), productCpuMs: ratio(productCpuMs) });

const resultsOf = (...rows: RowResult[]): PeerResults => ({
  conditions: [['machine', 'two cores']],
  chats: [{ store: 'redis', idlePerSecond: { cpuMs: {} }, rows, skipped: [] }],
  ...{ inFlight: [], streams: [], skipped: [], aims: [] },
});

const recorded = recordOf(resultsOf(measured(1, 2)));

describe('recordOf', () => {
  it('keeps the medians, and where they came about', () => {
    expect(recorded).toEqual({
      conditions: { machine: 'two cores' },
      rows: [{ latencyMs: 0, connections: 32, ratios: { perSecond: 1, productCpuMs: 2 } }],
    });
  });

  it.each([
    ['no rows', resultsOf()],
    ['errors', resultsOf(rowOf(measured(1, 1).ratios, 1))],
    ['no ratio', resultsOf(rowOf({ perSecond: ratio(1) }))],
  ])('keeps nothing of a run with %s', (_what, results) => {
    expect(() => recordOf(results)).toThrow(/^nothing is recorded: /);
  });
});

describe('judgeRows', () => {
  const verdicts = (...rows: RowResult[]) => judgeRows(recorded, rows).map(({ verdict }) => verdict);

  it.each([
    ['kept', 'kept', 'both are as recorded', measured(1, 2)],
    ['kept', 'kept', 'both are better', measured(3, 0.5)],
    ['kept', 'kept', 'both are worse by less than 15 %', measured(0.86, 2.3)],
    ['dropped', 'kept', 'the rate has dropped by more', measured(0.84, 2)],
    ['kept', 'dropped', 'the CPU time has grown by more', measured(1, 2.4)],
  ])('says %s and %s when %s', (rate, cpu, _when, row) => {
    expect(verdicts(row)).toEqual([rate, cpu]);
  });

  it('cannot tell without the row, or without a figure of it', () => {
    expect(verdicts()).toEqual(['not measured', 'not measured']);
    expect(verdicts(rowOf({ perSecond: ratio(1) }))).toEqual(['kept', 'not measured']);
  });
});
