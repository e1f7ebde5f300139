import { existsSync, readdirSync, readlinkSync } from 'node:fs';
import { readProcessTable } from '../../support/process-table.js';

/** The memory of programs together. */
export interface Footprint {
  /** Open sockets; none to be seen where there is no /proc. */
  sockets: number;
  /** Memory of their own. */
  megabytes: number;
}

/** Adds up the programs with these process ids. */
export function footprintOf(programs: readonly { pid: number }[]): Footprint {
  const table = readProcessTable();
  const bytes = programs.reduce((sum, { pid }) => sum + (table.get(pid)?.memory().ownBytes ?? 0), 0);
  return {
    sockets: programs.reduce((sum, { pid }) => sum + openSockets(pid), 0),
    megabytes: Math.round(bytes / 1_048_576),
  };
}

function openSockets(pid: number): number {
  const folder = `/proc/${pid}/fd`;
  if (!existsSync(folder)) return 0;
  return readdirSync(folder).filter((name) => isSocket(`${folder}/${name}`)).length;
}

function isSocket(path: string): boolean {
  try {
    return readlinkSync(path).startsWith('socket:');
  } catch {
    return false;
  }
}
