import { setTimeout as delay } from 'node:timers/promises';
import type { Service } from './service.js';

const maxBetweenMs = 5 * 60_000;
/** What the first death has cut off must be done before the next: a job that was cut off twice is given up. */
const minBetweenMs = 30_000;
const deadForMs = 5000;

/** Kills the second worker every five minutes, in a short soak once or twice, and revives it; gives how often it died. */
export async function killNowAndThen(
  service: Service,
  minutes: number,
  signal: AbortSignal,
): Promise<number> {
  const betweenMs = Math.max(minBetweenMs, Math.min(maxBetweenMs, (minutes * 60_000) / 3));
  const times = Math.max(1, Math.round((minutes * 60_000) / betweenMs) - 1);
  for (let deaths = 0; deaths < times; deaths += 1) {
    await delay(betweenMs - deadForMs, undefined, { signal });
    await service.killMortal();
    await delay(deadForMs, undefined, { signal });
    await service.reviveMortal();
  }
  return times;
}
