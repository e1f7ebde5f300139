import { cpus } from 'node:os';
import { cpuSecondsOf, readProcessTable } from '../support/process-table.js';

/** Whose usage is measured: our programs, what they talk to, who sends the requests, and a program beside ours. */
export type Part = 'api' | 'worker' | 'store' | 'peer' | 'simulator' | 'load';

/** The first process of each part; its children belong to it. */
export type PartPids = Readonly<Partial<Record<Part, number | undefined>>>;

export type ByPart = Readonly<Partial<Record<Part, number>>>;

/** What was used during a run. */
export interface Usage {
  readonly cpuSeconds: ByPart;
  /** Share of the machine's processor time that went to none of the parts: 0 to 1. */
  readonly othersBusy: number;
}

/** Measures from now on; the function that it returns ends that. */
export function startMeter(pids: PartPids): () => Usage {
  const parts = Object.entries(pids).filter(([, pid]) => pid !== undefined);
  const look = () => {
    const table = readProcessTable();
    return { ...machineTime(), cpu: parts.map(([, pid]) => cpuSecondsOf(table, pid)) };
  };
  const start = look();
  return () => {
    const end = look();
    const used = parts.map(([part], n) => [part, (end.cpu[n] ?? 0) - (start.cpu[n] ?? 0)] as const);
    const ours = used.reduce((sum, [, seconds]) => sum + seconds, 0);
    const othersBusy = Math.max(0, end.busy - start.busy - ours) / Math.max(0.001, end.all - start.all);
    return { cpuSeconds: Object.fromEntries(used), othersBusy };
  };
}

/** Seconds of processor time since the machine started, over all processors. */
function machineTime(): { busy: number; all: number } {
  const times = cpus().map(({ times: { idle, ...busy } }) => ({ idle, busy: Object.values(busy) }));
  const busy = times.flatMap((one) => one.busy).reduce((sum, ms) => sum + ms / 1000, 0);
  return { busy, all: busy + times.reduce((sum, { idle }) => sum + idle / 1000, 0) };
}
