/** What a store was asked, as it counts itself. */
export interface StoreCounts {
  /** Commands, those that scripts call included. */
  readonly commands: number;
  /** Calls of scripts and functions. */
  readonly scripts: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
}

const names = ['commands', 'scripts', 'bytesIn', 'bytesOut'] as const satisfies (keyof StoreCounts)[];

/** Makes each count anew from what it is called. */
const eachCount = (count: (name: keyof StoreCounts) => number): StoreCounts =>
  Object.fromEntries(names.map((name) => [name, count(name)])) as unknown as StoreCounts;

export const countsBetween = (before: StoreCounts, after: StoreCounts): StoreCounts =>
  eachCount((name) => after[name] - before[name]);

/** For one answer, or for one second. */
export const countsPer = (counts: StoreCounts, divisor: number): StoreCounts =>
  eachCount((name) => counts[name] / divisor);

/** Without what the store is asked anyway in so many seconds. */
export const countsBeyond = (counts: StoreCounts, idlePerSecond: StoreCounts, seconds: number): StoreCounts =>
  eachCount((name) => counts[name] - idlePerSecond[name] * seconds);

const scriptCommand = /^(?:eval|evalsha|fcall)(?:_ro)?$/;

/** From Redis' `INFO stats commandstats`; the benchmark's own INFO is left out. */
export function parseRedisCounts(info: string): StoreCounts {
  const calls = [...info.matchAll(/^cmdstat_(\S+?):calls=(\d+)/gm)].map(
    ([, command = '', count]) => [command, Number(count)] as const,
  );
  const sum = (wanted: (command: string) => boolean) =>
    calls.reduce((total, [command, count]) => total + (wanted(command) ? count : 0), 0);
  const stat = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1]);
  return {
    commands: sum((command) => command !== 'info'),
    scripts: sum((command) => scriptCommand.test(command)),
    bytesIn: stat('total_net_input_bytes'),
    bytesOut: stat('total_net_output_bytes'),
  };
}
