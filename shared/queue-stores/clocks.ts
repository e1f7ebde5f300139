/** A look at the store's clock; all in milliseconds since the epoch. */
interface ClockReading {
  /** By our clock. */
  askedAt: number;
  answeredAt: number;
  /** By the store's. */
  storeAt: number;
}

/** Locks, deadlines and ages are compared across machines; more than this apart, jobs are given up or kept wrongly. */
const mostApartMs = 2000;

/** What is wrong with the clocks, if they are surely too far apart: the store has read its own at any time in between. */
export function findClockDefect({ askedAt, answeredAt, storeAt }: ClockReading): string | undefined {
  const apartMs = storeAt - (askedAt + answeredAt) / 2;
  if (Math.abs(apartMs) - (answeredAt - askedAt) / 2 <= mostApartMs) return undefined;
  const seconds = (Math.abs(apartMs) / 1000).toFixed(1);
  const direction = apartMs > 0 ? 'behind' : 'ahead of';
  return `the clock of this machine is ${seconds} s ${direction} the queue store's: synchronise both (NTP) to within 2 s`;
}
