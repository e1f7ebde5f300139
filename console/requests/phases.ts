import type { RecentRequest } from '../../shared/history.ts';
import { formatDuration } from '../parts/format.ts';

/** What a chat waited for, and how long, in milliseconds. */
export interface Phase {
  readonly name: 'received' | 'queued' | 'started' | 'writing';
  readonly ms: number;
}

type Times = Pick<RecentRequest, 'queuedMs' | 'startedMs' | 'firstTokenMs' | 'endedMs'>;

/** The phases of a chat in their order; together they are as long as it took. */
export function phasesOf({ queuedMs, startedMs, firstTokenMs, endedMs }: Times): Phase[] {
  const begins: [Phase['name'], number | undefined][] = [
    ['received', 0],
    ['queued', queuedMs],
    ['started', startedMs],
    ['writing', firstTokenMs],
  ];
  const known = begins.flatMap(([name, at]) => (at === undefined ? [] : [{ name, at }]));
  return known.map(({ name, at }, n) => ({ name, ms: Math.max(0, (known[n + 1]?.at ?? endedMs) - at) }));
}

/** `queued 2 ms, started 300 ms, first token 900 ms, ended 3.1 s`. */
export function describeTimes({ queuedMs, startedMs, firstTokenMs, endedMs }: Times): string {
  const parts: [string, number | undefined][] = [
    ['queued', queuedMs],
    ['started', startedMs],
    ['first token', firstTokenMs],
    ['ended', endedMs],
  ];
  return parts.flatMap(([what, ms]) => (ms === undefined ? [] : `${what} ${formatDuration(ms)}`)).join(', ');
}
