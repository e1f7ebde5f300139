import { median } from '../interleaved/statistics.js';
import type { Metered } from '../measure.js';
import type { StoreName } from '../options.js';
import type { Side } from '../peer/sides.js';
import type { Usage } from '../usage.js';
import type { StreamResult } from './stream-load.js';

/** One run of streams. */
export interface StreamRun extends Metered<StreamResult> {
  readonly store: StoreName;
  readonly target: Side;
  /** At once. */
  readonly streams: number;
}

/** What the runs of one target with so many streams, on one store, come to: medians of times, sums of counts. */
export interface StreamFigures extends Pick<StreamRun, 'store' | 'target' | 'streams'> {
  readonly all: number;
  readonly whole: number;
  readonly flaws: Readonly<Record<string, number>>;
  readonly deltas: number;
  readonly events: number;
  readonly seconds: number;
  readonly firstMs: { readonly p50: number; readonly p99: number; readonly count: number };
  readonly delayMs: { readonly p50: number; readonly p99: number };
  readonly lateShare: number;
  /** Processor time per delta of the provider, in microseconds, by part. */
  readonly cpuUs: Readonly<Partial<Record<string, number>>>;
  /** Resident memory at its peak, in bytes, by part. */
  readonly peakBytes: Readonly<Partial<Record<string, number>>>;
  readonly machineBusy: number;
  readonly othersBusy: number;
}

/** The runs in groups of the same kind, in the order in which each was first done. */
export function summarise(runs: readonly StreamRun[], seconds: number): StreamFigures[] {
  const groups = Map.groupBy(runs, ({ store, target, streams }) => `${store} ${target} ${streams}`);
  return [...groups.values()].map((group) => figuresOf(group, seconds));
}

function figuresOf(group: readonly StreamRun[], seconds: number): StreamFigures {
  const [{ store, target, streams }] = group as [StreamRun];
  const sum = (value: (run: StreamRun) => number) => group.reduce((total, run) => total + value(run), 0);
  const middle = (value: (run: StreamRun) => number) => median(group.map(value).filter(Number.isFinite));
  const deltas = sum(({ load }) => load.deltas);
  const parts = new Set(group.flatMap(({ usage }) => Object.keys(usage.parts) as (keyof Usage['parts'])[]));
  const ofParts = (value: (part: keyof Usage['parts']) => number) =>
    Object.fromEntries([...parts].map((part) => [part, value(part)]));
  return {
    ...{ store, target, streams, deltas, seconds: seconds * group.length },
    all: sum(({ load }) => load.streams),
    whole: sum(({ load }) => load.whole),
    flaws: Object.assign({}, ...group.map(({ load }) => load.flaws)),
    events: sum(({ load }) => load.events),
    firstMs: {
      p50: middle(({ load }) => load.first.p50),
      p99: middle(({ load }) => load.first.p99),
      count: sum(({ load }) => load.first.count),
    },
    delayMs: { p50: middle(({ load }) => load.delay.p50), p99: middle(({ load }) => load.delay.p99) },
    lateShare: middle(({ load }) => load.lateShare),
    cpuUs: ofParts((part) => (sum(({ usage }) => usage.parts[part]?.cpuSeconds ?? 0) * 1e6) / deltas),
    peakBytes: ofParts((part) => Math.max(...group.map(({ usage }) => usage.parts[part]?.peakBytes ?? 0))),
    machineBusy: middle(({ usage }) => usage.machineBusy),
    othersBusy: middle(({ usage }) => usage.othersBusy),
  };
}

/** The same streams straight from the simulator, beside this one. */
export const baselineOf = (all: readonly StreamFigures[], one: StreamFigures): StreamFigures | undefined =>
  all.find(
    ({ target, store, streams }) => target === 'simulator' && store === one.store && streams === one.streams,
  );
