import { type AimResult, notMeasured, verdict } from '../aims.js';
import { number, percent } from '../table.js';
import type { ChatResults, RowResult } from './chat.js';
import type { RatioName } from './figures.js';
import type { InFlightResults } from './in-flight.js';

/** What our gateway on Redis is to reach beside the other one, with a provider of 0 ms. */
const aims: readonly Aim[] = [
  { figure: 'perSecond', connections: 1, least: 0.5 },
  { figure: 'perSecond', connections: 32, least: 1 },
  { figure: 'perSecond', connections: 128, least: 1 },
  { figure: 'p99Ms', connections: 128, most: 1 },
  { figure: 'productCpuMs', connections: 1, most: 2.2 },
  { figure: 'productCpuMs', connections: 128, most: 1.2 },
];

interface Aim {
  readonly figure: RatioName;
  readonly connections: number;
  readonly least?: number;
  readonly most?: number;
}

const figureTitles: Readonly<Record<RatioName, string>> = {
  perSecond: 'requests/s',
  p50Ms: 'p50',
  p99Ms: 'p99',
  productCpuMs: 'CPU per request',
};

/** Compares the medians of the ratios with what the project wants to reach; a run with errors of ours reaches nothing. */
export function comparePeerWithAims(chats: readonly ChatResults[]): AimResult[] {
  const rows = chats.find(({ store }) => store === 'redis')?.rows ?? [];
  return aims.map((aim) => judge(aim, rows));
}

function judge(
  { figure, connections, least = 0, most = Number.POSITIVE_INFINITY }: Aim,
  rows: readonly RowResult[],
) {
  const bound = least > 0 ? `at least ${number(least, 1)} ×` : `at most ${number(most, 1)} ×`;
  const place = `${connections} connection${connections === 1 ? '' : 's'}`;
  const aim = `Redis: ${figureTitles[figure]} ${bound} Portkey's at ${place}`;
  const row = rows.find((each) => each.latencyMs === 0 && each.connections === connections);
  const ratio = row?.ratios[figure];
  if (row === undefined || ratio === undefined) return notMeasured(aim);
  const { quillgate, portkey } = row.bySide;
  const isMet = quillgate.errors === 0 && ratio.median >= least && ratio.median <= most;
  const spread = `${number(ratio.least, 2)} to ${number(ratio.most, 2)}`;
  const errors = `errors: ${quillgate.errors}, Portkey ${portkey.errors}`;
  return { aim, verdict: verdict(isMet), numbers: `× ${number(ratio.median, 2)}, ${spread}; ${errors}` };
}

/** What many requests in flight are to reach. */
const leastOfIdeal = 0.97;
const mostGrowthBytes = 60_000;

/** Compares the requests in flight on Redis with what the project wants to reach. */
export const compareInFlightWithAims = (all: readonly InFlightResults[]): AimResult[] =>
  (all.find(({ store }) => store === 'redis')?.rows ?? []).map((row) => {
    const { connections, latencyMs, idealPerSecond, growthBytes, bySide } = row;
    const { errors, perSecond } = bySide.quillgate;
    const share = perSecond / idealPerSecond;
    const growth = growthBytes.quillgate ?? Number.NaN;
    return {
      aim:
        `Redis: ${number(connections)} in flight at ${latencyMs} ms, no error, at least ${percent(leastOfIdeal)} of the ideal rate, ` +
        `at most ${number(mostGrowthBytes / 1000)} KB for each`,
      verdict: verdict(errors === 0 && share >= leastOfIdeal && growth <= mostGrowthBytes),
      numbers: `${number(errors)} errors, ${number(share * 100, 1)} %, ${number(growth / 1000, 1)} KB`,
    };
  });
