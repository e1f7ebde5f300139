import { setTimeout as delay } from 'node:timers/promises';
import { Lifecycle } from '../../shared/runtime/lifecycle.js';
import { createLog } from '../../shared/runtime/log.js';
import { openService, type Service } from './caller.js';
import { newPlace, type Place } from './programs.js';
import { largeBodies } from './promised-bodies.js';
import { growthOfSearch, growths } from './promised-growth.js';
import { otherUsers, overload, slow, waves } from './promised-loads.js';
import { failing, measuresOfTimes } from './promised-times.js';
import { describeFigures, type Figure, figure, isKept, loadAverage, number } from './report.js';
import type { StoreName } from './stores.js';

type Measure = (service: Service) => Promise<Figure[]>;

/** What is measured on programs of their own, with these settings; a flood or wave on PostgreSQL is a smaller one. */
function measurementsOn(store: StoreName): Record<string, readonly [Record<string, string>, ...Measure[]]> {
  const [flood, wave] = store === 'redis' ? [500, 5000] : [200, 500];
  return {
    times: [{ VERTEXAI_CONCURRENCY: '3', OPENAI_MODELS: `${failing},*` }, ...measuresOfTimes],
    overload: [{ OPENAI_CONCURRENCY: '5', CHAT_TIMEOUT_MS: '6000' }, overload],
    others: [
      { OPENAI_CONCURRENCY: '5', OPENAI_MODELS: `${slow},*` },
      (service) => otherUsers(service, flood),
    ],
    growth: [{}, growths, growthOfSearch],
    waves: [{ OPENAI_CONCURRENCY: '5000' }, (service) => waves(service, wave)],
  };
}

/** Measures the promised times and shares of docs/guarantees.md; gives whether all were kept. */
export async function measurePromises(store: StoreName, place: Place, print: (text: string) => void) {
  const figures: Figure[] = [];
  for (const [name, [settings, ...measures]] of Object.entries(measurementsOn(store))) {
    const log = createLog({ program: 'bench', level: 'silent' });
    const lifecycle = place.lifecycle.opened(name, new Lifecycle(log), (open) => open.close());
    const service = await openService(store, settings, { ...newPlace(place, name), lifecycle });
    for (const measure of measures) {
      const found = await measureOrMiss(() => measure(service), name);
      place.lifecycle.stopping.throwIfAborted();
      print(found.map(({ title, measured, unit }) => `${title}: ${number(measured)} ${unit}\n`).join(''));
      figures.push(...found);
    }
    await lifecycle.close();
  }
  figures.push(...(await measureOrMiss(() => largeBodies(store, newPlace(place, 'bodies')), 'bodies')));
  print(`\n${describeFigures(figures)}\nLoad average after: ${loadAverage()}\n`);
  return figures.every(isKept);
}

/** What fails, or takes three minutes, is a figure that could not be measured. */
async function measureOrMiss(measure: () => Promise<Figure[]>, name: string): Promise<Figure[]> {
  const tooLong = delay(180_000, 'took more than three minutes', { ref: false }).then((reason) =>
    Promise.reject(new Error(reason)),
  );
  try {
    return await Promise.race([measure(), tooLong]);
  } catch (error) {
    return [figure(`${name}: ${(error as Error).message}`, Number.NaN, ['≤', 0], '')];
  }
}
