import { describe, expect, it } from 'vitest';
import type { ChatResults, RowResult } from './chat.js';
import { chartsOf } from './plots.js';

const side = (perSecond: number, p99Ms?: number) => ({
  ...{
    answers: 1,
    errors: 0,
    perSecond,
    cpuMs: { api: 1, worker: 2, store: 3, peer: 4, load: 9 },
    peakBytes: {},
  },
  ...(p99Ms !== undefined && { p99Ms }),
});

const rowOf = (latencyMs: number, connections: number): RowResult => ({
  ...{ latencyMs, connections, rounds: [], ratios: {} },
  bySide: { quillgate: side(100, 5), portkey: side(200), simulator: side(9000) },
});

const chat: ChatResults = {
  store: 'redis',
  idlePerSecond: { cpuMs: {} },
  rows: [rowOf(0, 1), rowOf(0, 1000), rowOf(60, 1)],
  skipped: [],
};

describe('chartsOf', () => {
  it('has a panel for each time of the provider and a group for each number of connections', () => {
    const { rate } = chartsOf(chat);
    expect(rate?.panels.map(({ title, groups }) => [title, groups.map(({ label }) => label)])).toEqual([
      ['provider 0 ms', ['1', '1,000']],
      ['provider 60 ms', ['1']],
    ]);
  });

  it('stands ours beside the other', () => {
    const [first] = chartsOf(chat).rate?.panels[0]?.groups ?? [];
    expect(first?.bars.map(({ segments }) => segments)).toEqual([
      [{ series: 'Quillgate', value: 100 }],
      [{ series: 'Portkey', value: 200 }],
    ]);
  });

  it('leaves empty what was not measured', () => {
    const [first] = chartsOf(chat).p99?.panels[0]?.groups ?? [];
    expect(first?.bars.map(({ segments }) => segments.length)).toEqual([1, 0]);
  });

  it('stacks the CPU time of our processes beside that of the other', () => {
    const [first] = chartsOf(chat).cpu?.panels[0]?.groups ?? [];
    expect(first?.bars.map(({ segments }) => segments.map(({ value }) => value))).toEqual([[1, 2, 3], [4]]);
    expect(chartsOf(chat).cpu?.series.map(({ name }) => name)).toEqual(['API', 'worker', 'store', 'Portkey']);
  });
});
