import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Guard } from '../options.js';
import { thisCheckout } from '../programs.js';
import { type Column, number, table } from '../table.js';
import type { RowResult } from './chat.js';
import { compareWithPeer, type Surroundings } from './compare.js';
import type { PeerResults } from './report.js';

/** The ratios that a later run is compared with, as they are committed. */
const recordedFile = join(thisCheckout, 'test', 'bench', 'peer', 'recorded.json');

const recordedSchema = z.object({
  /** Where they came about. */
  conditions: z.record(z.string(), z.string()),
  rows: z.array(
    z.object({
      latencyMs: z.number(),
      connections: z.number(),
      /** Medians of the rounds, ours by the other's. */
      ratios: z.object({ perSecond: z.number().positive(), productCpuMs: z.number().positive() }),
    }),
  ),
});

type Recorded = z.infer<typeof recordedSchema>;

/** The share that a ratio may have become worse by. */
const toleratedShare = 0.15;

/** `npm run bench -- --guard`: says whether ours has become slower beside the other gateway than was recorded. Throws when it cannot tell. */
export async function runGuard(guard: Guard, surroundings: Surroundings): Promise<'done' | 'slower'> {
  const recorded = guard === 'compare' ? readRecorded() : undefined;
  const results = await compareWithPeer(surroundings);
  if (recorded === undefined) {
    writeFileSync(recordedFile, `${JSON.stringify(recordOf(results), undefined, 2)}\n`);
    surroundings.print(`\nrecorded in ${recordedFile}\n`);
    return 'done';
  }
  const lines = judgeRows(recorded, rowsOf(results));
  surroundings.print(`\n${describeGuard(lines)}`);
  if (lines.some(({ verdict }) => verdict === 'not measured'))
    throw new Error('Not every recorded row could be measured.');
  return lines.some(({ verdict }) => verdict === 'dropped') ? 'slower' : 'done';
}

function readRecorded(): Recorded {
  try {
    return recordedSchema.parse(JSON.parse(readFileSync(recordedFile, 'utf8')));
  } catch (cause) {
    throw new Error(`nothing to compare with in ${recordedFile}: --guard --record writes it`, { cause });
  }
}

const rowsOf = ({ chats }: PeerResults): readonly RowResult[] => chats.flatMap(({ rows }) => rows);

/** Throws when a row has no ratios, or errors of ours: nothing of that is worth keeping. */
export function recordOf(results: PeerResults): Recorded {
  const rows = rowsOf(results).map(({ latencyMs, connections, ratios, bySide }) => {
    const [perSecond, productCpuMs] = [ratios.perSecond?.median, ratios.productCpuMs?.median];
    if (perSecond === undefined || productCpuMs === undefined || bySide.quillgate.errors > 0)
      throw new Error(`nothing is recorded: errors, or no answers, at ${connections} connections`);
    return { latencyMs, connections, ratios: { perSecond, productCpuMs } };
  });
  if (rows.length === 0) throw new Error('nothing is recorded: no row could be measured');
  return { conditions: Object.fromEntries(results.conditions), rows };
}

/** One figure of a row, recorded and now. */
export interface GuardLine {
  readonly row: string;
  readonly figure: 'requests/s' | 'CPU per request';
  readonly recorded: number;
  readonly now: number | undefined;
  readonly verdict: 'kept' | 'dropped' | 'not measured';
}

/** The rule: a median has dropped when it is worse than the recorded one by more than 15 %; more CPU time is worse. */
export function judgeRows({ rows: all }: Recorded, rows: readonly RowResult[]): GuardLine[] {
  return all.flatMap(({ latencyMs, connections, ratios }) => {
    const now = rows.find((each) => each.latencyMs === latencyMs && each.connections === connections);
    const row = `provider ${latencyMs} ms, connections ${connections}`;
    const [rate, cpu] = [now?.ratios.perSecond?.median, now?.ratios.productCpuMs?.median];
    return [
      {
        ...{ row, figure: 'requests/s' as const, recorded: ratios.perSecond, now: rate },
        verdict: verdictOn(rate, ratios.perSecond),
      },
      {
        ...{ row, figure: 'CPU per request' as const, recorded: ratios.productCpuMs, now: cpu },
        verdict: verdictOn(ratios.productCpuMs, cpu),
      },
    ];
  });
}

/** Of the two sides of a comparison, each the better the greater the first is. */
function verdictOn(better: number | undefined, worse: number | undefined): GuardLine['verdict'] {
  if (better === undefined || worse === undefined) return 'not measured';
  return better < (1 - toleratedShare) * worse ? 'dropped' : 'kept';
}

const columns: readonly Column<GuardLine>[] = [
  ['row', ({ row }) => row],
  ["ratio to Portkey's", ({ figure }) => figure],
  ['recorded', ({ recorded }) => number(recorded, 2)],
  ['now', ({ now = Number.NaN }) => number(now, 2)],
  ['', ({ verdict }) => (verdict === 'kept' ? 'kept' : `**${verdict}**`)],
];

const describeGuard = (lines: readonly GuardLine[]): string =>
  `Dropped: worse than recorded by more than ${number(toleratedShare * 100)} %.\n\n${table(columns, lines)}`;
