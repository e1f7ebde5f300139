import type { Idle } from '../idle.js';
import type { Round as AnyRound } from '../interleaved/interleave.js';
import { median, type Ratio, ratioOf } from '../interleaved/statistics.js';
import type { LoadErrors } from '../load.js';
import { errorCount } from '../results.js';
import type { Run } from '../runs.js';
import { countsBeyond, countsPer, type StoreCounts } from '../store-counts.js';
import { type Part, productParts } from '../usage.js';
import { type Side, sides } from './sides.js';

/** What one measurement of one side came to. */
export interface Measured {
  readonly answers: number;
  /** Expected answers per second. */
  readonly perSecond: number;
  readonly p50Ms?: number;
  readonly p99Ms?: number;
  readonly errors: LoadErrors;
  /** CPU milliseconds for one answer, of each process. */
  readonly cpuMs: ByPart;
  /** Of what answers: API, worker and store together, or the other gateway; absent when not all was measured. */
  readonly productCpuMs?: number;
  /** Resident memory at its peak, of each process. */
  readonly peakBytes: ByPart;
  /** What the store was asked for one answer, without what it is asked anyway. */
  readonly store?: StoreCounts;
  readonly machineBusy: number;
  /** Share of the machine's CPU time that went to none of ours: 0 to 1. */
  readonly othersBusy: number;
}

export type ByPart = Readonly<Partial<Record<Part, number>>>;
export type Round = AnyRound<Side, Measured>;

/** What a request costs an operator on each side. */
export const partsOf: Readonly<Record<Side, readonly Part[]>> = {
  quillgate: productParts,
  portkey: ['peer'],
  simulator: [],
};

/** With fewer answers in a round, one in a hundred is none of them. */
const leastForP99 = 100;

/** The figures of one run. */
export function measuredOf(side: Side, { load, usage, counts }: Run, idle: Idle): Measured {
  const { answers, seconds, p50Ms, p99Ms, errors } = load;
  const cpuMs = mapParts(usage.parts, ({ cpuSeconds }) => (cpuSeconds * 1000) / answers);
  const product = partsOf[side].map((part) => cpuMs[part] ?? Number.NaN);
  const productCpuMs = product.reduce((sum, one) => sum + one, 0);
  const store = side === 'quillgate' && counts && idle.store && countsBeyond(counts, idle.store, seconds);
  return {
    ...{ answers, errors, cpuMs },
    perSecond: answers / seconds,
    ...(p50Ms !== undefined && { p50Ms }),
    ...(p99Ms !== undefined && answers >= leastForP99 && { p99Ms }),
    ...(product.length > 0 && Number.isFinite(productCpuMs) && { productCpuMs }),
    peakBytes: mapParts(usage.parts, ({ peakBytes }) => peakBytes),
    ...(store && { store: countsPer(store, answers) }),
    machineBusy: usage.machineBusy,
    othersBusy: usage.othersBusy,
  };
}

/** Applies the function to each part that was measured. */
function mapParts<Value>(parts: Partial<Record<Part, Value>>, map: (value: Value) => number): ByPart {
  const entries = Object.entries(parts) as [Part, Value][];
  return Object.fromEntries(entries.map(([part, value]) => [part, map(value)]));
}

/** What the rounds of one row say together: medians, ours divided by the other's, and how many requests failed. */
export interface Summary {
  readonly bySide: Readonly<Record<Side, SideSummary>>;
  readonly ratios: Readonly<Partial<Record<RatioName, Ratio>>>;
}

export type RatioName = 'perSecond' | 'p50Ms' | 'p99Ms' | 'productCpuMs';

export interface SideSummary
  extends Pick<Measured, 'answers' | 'perSecond' | 'p50Ms' | 'p99Ms' | 'cpuMs' | 'productCpuMs' | 'store'> {
  readonly errors: number;
  /** The most of all rounds. */
  readonly peakBytes: ByPart;
}

export function summarise(rounds: readonly Round[]): Summary {
  const bySide = sides.map((side) => [side, summariseSide(rounds.map((round) => round[side]))] as const);
  const ratios = (['perSecond', 'p50Ms', 'p99Ms', 'productCpuMs'] as const).flatMap((name) => {
    const ratio = ratioOf(rounds.map(({ quillgate, portkey }) => [quillgate[name], portkey[name]]));
    return ratio ? [[name, ratio] as const] : [];
  });
  return {
    bySide: Object.fromEntries(bySide) as Summary['bySide'],
    ratios: Object.fromEntries(ratios),
  };
}

function summariseSide(all: readonly Measured[]): SideSummary {
  const middle = (pick: (measured: Measured) => number | undefined) => {
    const values = all.map(pick).filter((value) => value !== undefined && Number.isFinite(value));
    return median(values as number[]);
  };
  const optional = (name: 'p50Ms' | 'p99Ms' | 'productCpuMs') =>
    all.every((measured) => measured[name] !== undefined) && {
      [name]: middle((measured) => measured[name]),
    };
  const parts = all[0]?.cpuMs ?? {};
  const ofParts = (value: (part: Part) => number) =>
    Object.fromEntries((Object.keys(parts) as Part[]).map((part) => [part, value(part)]));
  const countOf = (name: keyof StoreCounts) => middle(({ store }) => store?.[name]);
  return {
    answers: all.reduce((sum, { answers }) => sum + answers, 0),
    errors: all.reduce((sum, { errors }) => sum + errorCount(errors), 0),
    perSecond: middle(({ perSecond }) => perSecond),
    ...optional('p50Ms'),
    ...optional('p99Ms'),
    ...optional('productCpuMs'),
    cpuMs: ofParts((part) => middle(({ cpuMs }) => cpuMs[part])),
    peakBytes: ofParts((part) => Math.max(...all.map(({ peakBytes }) => peakBytes[part] ?? 0))),
    ...(all.every(({ store }) => store) && {
      store: {
        commands: countOf('commands'),
        scripts: countOf('scripts'),
        bytesIn: countOf('bytesIn'),
        bytesOut: countOf('bytesOut'),
      },
    }),
  };
}
