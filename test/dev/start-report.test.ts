import { describe, expect, it } from 'vitest';
import { StartReport } from '../../dev/banner.js';
import type { Stages } from '../../dev/stages.js';

function reportWith(addresses: { DATABASE_URL?: string; REDIS_URL?: string } = {}) {
  const said: string[] = [];
  const say = (word: string) => (text?: string) => void said.push(text ? `${word} ${text}` : word);
  const stages: Stages = {
    begin: say('begin'),
    turnTo: say('turn to'),
    succeed: say('succeed'),
    fail: say('fail'),
  };
  const config = { DATA_DIR: '.data', DATABASE_URL: undefined, REDIS_URL: undefined, ...addresses };
  return { said, report: new StartReport({ stages, config, stopWithinMs: 34_001 }) };
}

describe('StartReport', () => {
  it.each([
    [{ DATABASE_URL: 'postgres://u:secret@db/x' }, 'your PostgreSQL (DATABASE_URL)'],
    [{ REDIS_URL: 'redis://:secret@q' }, '.data/, the queue in your Redis (REDIS_URL)'],
  ])('names where the data is by the variable %j, and no address', (addresses, place) => {
    const { said, report } = reportWith(addresses);
    report.stopping();
    report.stopped();
    expect(said.at(-1)).toBe(`succeed Stopped; the data is in ${place}. The next start continues with it.`);
  });
});
