import { cpus } from 'node:os';
import { type ProcessTable, readProcessTable } from './process-table.js';

/** Whose usage is measured: our programs, what they talk to, who sends the requests, and another gateway beside ours. */
export const parts = ['api', 'worker', 'store', 'simulator', 'load', 'peer'] as const;

export type Part = (typeof parts)[number];

/** What a request costs an operator; the rest only plays the client and the provider. */
export const productParts: readonly Part[] = ['api', 'worker', 'store'];

/** The first process of each part; its children belong to it. */
export type PartPids = Readonly<Partial<Record<Part, number | undefined>>>;

/** What one part used during a run. */
export interface PartUsage {
  readonly cpuSeconds: number;
  /** The most resident memory seen, looking twice a second. */
  readonly peakBytes: number;
  readonly endBytes: number;
}

/** What was used during a run. A part that could not be measured is absent. */
export interface Usage {
  readonly parts: Readonly<Partial<Record<Part, PartUsage>>>;
  /** Share of the machine's CPU time that was used, by whomever: 0 to 1. */
  readonly machineBusy: number;
  /** The part of it that none of ours accounts for: other programs, and what the kernel did for nobody in particular. */
  readonly othersBusy: number;
}

const lookIntervalMs = 500;

/** Measures from now on. */
export function startMeter(pids: PartPids): { stop(): Usage } {
  const start = look();
  const peaks = new Map<Part, number>();
  const note = (table: ProcessTable) => {
    for (const part of parts) peaks.set(part, Math.max(peaks.get(part) ?? 0, memoryOf(table, pids[part])));
  };
  note(start.table);
  const looking = setInterval(() => note(readProcessTable()), lookIntervalMs);
  return {
    stop: () => {
      clearInterval(looking);
      const end = look();
      note(end.table);
      return summarise({ pids, peaks, start, end });
    },
  };
}

interface Look {
  readonly table: ProcessTable;
  /** Seconds of CPU time since the machine started, over all CPUs. */
  readonly machine: { readonly busy: number; readonly all: number };
}

const look = (): Look => ({ table: readProcessTable(), machine: machineTime() });

interface Looks {
  pids: PartPids;
  peaks: ReadonlyMap<Part, number>;
  start: Look;
  end: Look;
}

function summarise({ pids, peaks, start, end }: Looks): Usage {
  const isMeasured = (part: Part) => start.table.has(pids[part] ?? 0) && end.table.has(pids[part] ?? 0);
  const usageOf = (part: Part): PartUsage => ({
    cpuSeconds: cpuOf(end.table, pids[part]) - cpuOf(start.table, pids[part]),
    peakBytes: peaks.get(part) ?? 0,
    endBytes: memoryOf(end.table, pids[part]),
  });
  const used = parts.filter(isMeasured).map((part) => [part, usageOf(part)] as const);
  const ours = used.reduce((sum, [, { cpuSeconds }]) => sum + cpuSeconds, 0);
  const busy = end.machine.busy - start.machine.busy;
  const all = Math.max(0.001, end.machine.all - start.machine.all);
  return {
    parts: Object.fromEntries(used),
    machineBusy: busy / all,
    othersBusy: Math.max(0, busy - ours) / all,
  };
}

/** The process and everything it has started, at any depth. */
function family(table: ProcessTable, root: number | undefined): number[] {
  if (root === undefined || !table.has(root)) return [];
  const members = [root];
  for (const member of members) {
    for (const [pid, { parent }] of table) if (parent === member) members.push(pid);
  }
  return members;
}

/** A server's process that ends during the run is found again in its parent's count of ended children. */
function cpuOf(table: ProcessTable, root: number | undefined): number {
  const ended = table.get(root ?? 0)?.endedChildrenCpuSeconds ?? 0;
  return family(table, root).reduce((sum, pid) => sum + (table.get(pid)?.cpuSeconds ?? 0), ended);
}

/**
 * Resident bytes of a process and everything it has started; 0 for none. PostgreSQL's processes share one big piece of
 * memory, which must not be counted in each of them.
 */
export function memoryOf(table: ProcessTable, root: number | undefined): number {
  const memories = family(table, root).map(
    (pid) => table.get(pid)?.memory() ?? { ownBytes: 0, sharedBytes: 0 },
  );
  const own = memories.reduce((sum, { ownBytes }) => sum + ownBytes, 0);
  return own + Math.max(0, ...memories.map(({ sharedBytes }) => sharedBytes));
}

function machineTime(): Look['machine'] {
  const times = cpus().map(({ times: { user, nice, sys, irq, idle } }) => ({
    busy: user + nice + sys + irq,
    idle,
  }));
  const busy = times.reduce((sum, time) => sum + time.busy, 0) / 1000;
  return { busy, all: busy + times.reduce((sum, time) => sum + time.idle, 0) / 1000 };
}
