import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Bar, type Chart, drawBarChart, type Panel, type Series } from '../plots/bar-chart.js';
import { storeTitles } from '../store.js';
import { number, partTitles } from '../table.js';
import type { Part } from '../usage.js';
import type { ChatResults, RowResult } from './chat.js';
import { partsOf } from './figures.js';
import type { Side } from './sides.js';

/** The sides that the plots show: the simulator alone would dwarf both. */
const plotted = ['quillgate', 'portkey'] as const satisfies Side[];

const sideSeries: Readonly<Record<(typeof plotted)[number], Series>> = {
  quillgate: { name: 'Quillgate', color: '#3b82c4' },
  portkey: { name: 'Portkey', color: '#e08a3c' },
};

const partColors: Readonly<Partial<Record<Part, string>>> = {
  api: '#3b82c4',
  worker: '#45a889',
  store: '#9a6fc9',
  peer: sideSeries.portkey.color,
};

/** Writes the plots of each store into the folder, and says their files' names. */
export function writePlots(chats: readonly ChatResults[], folder: string): string[] {
  mkdirSync(folder, { recursive: true });
  return chats
    .filter(({ rows }) => rows.length > 0)
    .flatMap((chat) =>
      Object.entries(chartsOf(chat)).map(([name, chart]) => {
        const file = join(folder, `peer-${chat.store}-${name}.svg`);
        writeFileSync(file, drawBarChart(chart));
        return file;
      }),
    );
}

/** What is drawn of one store, by the name of the file. */
export function chartsOf({ store, rows }: ChatResults): Record<string, Chart> {
  const on = `queue on ${storeTitles[store]}`;
  const series = plotted.map((side) => sideSeries[side]);
  return {
    rate: {
      title: `Requests per second by connections, ${on}`,
      series,
      panels: panelsOf(rows, (row) => plotted.map((side) => figureBar(row, side, 'perSecond'))),
    },
    p99: {
      title: `p99 in milliseconds by connections, ${on}`,
      series,
      panels: panelsOf(rows, (row) => plotted.map((side) => figureBar(row, side, 'p99Ms'))),
    },
    cpu: {
      title: `CPU milliseconds per request by connections, ${on}`,
      series: plotted.flatMap((side) =>
        partsOf[side].map((part) => ({ name: partTitles[part], color: partColors[part] ?? '' })),
      ),
      panels: panelsOf(rows, (row) => plotted.map((side) => cpuBar(row, side))),
    },
  };
}

/** A panel for each time of the provider, with a group for each number of connections. */
function panelsOf(rows: readonly RowResult[], barsOf: (row: RowResult) => Bar[]): Panel[] {
  return [...Map.groupBy(rows, ({ latencyMs }) => latencyMs)].map(([latencyMs, group]) => ({
    title: `provider ${latencyMs} ms`,
    groups: group.map((row) => ({ label: number(row.connections), bars: barsOf(row) })),
  }));
}

function figureBar(row: RowResult, side: (typeof plotted)[number], figure: 'perSecond' | 'p99Ms'): Bar {
  const value = row.bySide[side][figure];
  if (value === undefined) return { segments: [] };
  const ofRounds = row.rounds.map((round) => round[side][figure] ?? value);
  return {
    segments: [{ series: sideSeries[side].name, value }],
    spread: { least: Math.min(value, ...ofRounds), most: Math.max(value, ...ofRounds) },
  };
}

function cpuBar(row: RowResult, side: Side): Bar {
  const { cpuMs } = row.bySide[side];
  const segments = partsOf[side].flatMap((part) => {
    const value = cpuMs[part];
    return value === undefined ? [] : [{ series: partTitles[part], value }];
  });
  return { segments };
}
