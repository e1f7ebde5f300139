import { describe, expect, it } from 'vitest';
import type { Run } from '../runs.js';
import { measuredOf, type Round, summarise } from './figures.js';

const noErrors = { wrongStatus: {}, wrongBody: 0, timeouts: 0, socket: 0, unanswered: 0 };
const idle = { cpuMs: {}, store: { commands: 10, scripts: 1, bytesIn: 100, bytesOut: 200 } };

const part = (cpuSeconds: number) => ({ cpuSeconds, peakBytes: 1e6, endBytes: 1e6 });

function runOf(answers: number, parts: Run['usage']['parts']): Run {
  return {
    ...{ target: 'chat', latencyMs: 0, connections: 1, maxAtProvider: 1 },
    load: { answers, seconds: 2, p50Ms: 1, p99Ms: 9, errors: noErrors },
    usage: { parts, machineBusy: 0.5, othersBusy: 0.1 },
    counts: { commands: 1020, scripts: 302, bytesIn: 50_200, bytesOut: 400 },
  };
}

describe('measuredOf', () => {
  it('gives for one answer what each process used, and what the store was asked beyond an idle second', () => {
    const parts = { api: part(0.02), worker: part(0.05), store: part(0.03), peer: part(7) };
    expect(measuredOf('quillgate', runOf(100, parts), idle)).toMatchObject({
      perSecond: 50,
      cpuMs: { api: 0.2, worker: 0.5, store: 0.3, peer: 70 },
      productCpuMs: 1,
      store: { commands: 10, scripts: 3, bytesIn: 500, bytesOut: 0 },
    });
  });

  it("counts the other gateway's own process alone, which has no store", () => {
    const measured = measuredOf('portkey', runOf(100, { api: part(3), peer: part(0.1) }), idle);
    expect(measured.productCpuMs).toBe(1);
    expect(measured).not.toHaveProperty('store');
  });

  it('has no sum when one of its processes was not measured', () => {
    const measured = measuredOf('quillgate', runOf(100, { api: part(1), worker: part(1) }), idle);
    expect(measured).not.toHaveProperty('productCpuMs');
  });

  it('gives no p99 of fewer than a hundred answers', () => {
    expect(measuredOf('portkey', runOf(99, {}), idle)).not.toHaveProperty('p99Ms');
    expect(measuredOf('portkey', runOf(100, {}), idle)).toHaveProperty('p99Ms', 9);
  });
});

describe('summarise', () => {
  const side = (perSecond: number, errors = 0) => ({
    ...measuredOf('portkey', runOf(perSecond * 2, { peer: part(perSecond / 1000) }), idle),
    errors: { ...noErrors, timeouts: errors },
  });
  const roundOf = (ours: Round['quillgate'], other: number): Round => ({
    quillgate: ours,
    portkey: side(other, 1),
    simulator: side(1000),
  });

  it('gives medians, sums of errors, and ours divided by the other round by round', () => {
    const rounds = [roundOf(side(100), 100), roundOf(side(50, 3), 100), roundOf(side(120), 60)];
    const { bySide, ratios } = summarise(rounds);
    expect(bySide.quillgate).toMatchObject({ answers: 540, perSecond: 100, errors: 3 });
    expect(bySide.portkey).toMatchObject({ perSecond: 100, errors: 3 });
    expect(ratios.perSecond).toEqual({ median: 1, least: 0.5, most: 2 });
  });

  it('has no ratio of a figure that a round lacks', () => {
    const { p99Ms, ...without } = side(100);
    const { bySide, ratios } = summarise([roundOf(side(100), 100), roundOf(without, 100)]);
    expect(ratios).not.toHaveProperty('p99Ms');
    expect(bySide.quillgate).not.toHaveProperty('p99Ms');
    expect(ratios).toHaveProperty('p50Ms');
    expect(p99Ms).toBe(9);
  });
});
