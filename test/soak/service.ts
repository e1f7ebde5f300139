import { migrateDatabase } from '../../db/database/migrate.js';
import type { ChildProgram } from '../../dev/child-program.js';
import { parseConfig } from '../../shared/config/config.js';
import { providerIds } from '../../shared/contract.js';
import { migrateQueueStore } from '../../shared/queue/stores/open.js';
import type { Lifecycle } from '../../shared/runtime/lifecycle.js';
import { environmentOf } from '../bench/gateway.js';
import { failureOf, programsIn } from '../bench/programs.js';
import type { RunningStore } from '../bench/store.js';
import { meanBusyMs, providerTimeoutMs } from './mix.js';

/** One API, two workers and a simulator, each a process of its own as in production. */
export interface Service {
  readonly chatUrl: string;
  readonly simulatorUrl: string;
  readonly pids: { readonly api: number; readonly 'worker 1': number; readonly simulator: number };
  /** The second worker as it is now: it dies and is born again. */
  readonly mortal: () => ChildProgram;
  /** Kills the second worker without a warning. */
  killMortal(): Promise<void>;
  /** Starts it again and waits until it can work. */
  reviveMortal(): Promise<void>;
  /** Rejects when one of the others ends although nobody asked it to. */
  readonly failed: Promise<never>;
}

interface ServiceOptions {
  store: RunningStore;
  concurrency: number;
  lifecycle: Lifecycle;
  /** Folder for logs. */
  dir: string;
}

/** How many requests of the mix the two workers can do in a second, whose pools do so many at once. */
export const capacityPerSecond = (concurrency: number): number =>
  (2 * providerIds.length * concurrency) / (meanBusyMs / 1000);

/** Starts them and waits until they are ready. */
export async function openService({ store, concurrency, lifecycle, dir }: ServiceOptions): Promise<Service> {
  const config = parseConfig(store.variables, 'migrate');
  await migrateDatabase(config.DATABASE_URL ?? '');
  await migrateQueueStore(config);
  const run = programsIn(dir, lifecycle);
  const simulator = await run('simulator', ['simulator', '--port', '0'], { PATH: process.env.PATH });
  const simulatorUrl = `http://127.0.0.1:${simulator.port}`;
  const environment = environmentOf(store, simulatorUrl, settingsOf(concurrency));
  const start = (name: string, program: string) => run(name, [program], environment);
  const api = await start('api', 'api');
  const steady = await start('worker-1', 'worker');
  let mortal = await start('worker-2', 'worker');
  const failed = failureOf([simulator, api, steady], dir);
  await Promise.race([Promise.all([api, steady, mortal].map(({ ready }) => ready)), failed]);
  return {
    chatUrl: `http://127.0.0.1:${api.port}/chat`,
    simulatorUrl,
    pids: { api: api.pid, 'worker 1': steady.pid, simulator: simulator.pid },
    mortal: () => mortal,
    killMortal: async () => {
      process.kill(mortal.pid, 'SIGKILL');
      await mortal.ended;
    },
    reviveMortal: async () => {
      mortal = await start('worker-2', 'worker');
      await mortal.ready;
    },
    failed,
  };
}

function settingsOf(concurrency: number): Record<string, string> {
  const perProvider = providerIds.flatMap((id) => [
    [`${id.toUpperCase()}_CONCURRENCY`, `${concurrency}`],
    [`${id.toUpperCase()}_TIMEOUT_MS`, `${providerTimeoutMs}`],
  ]);
  return Object.fromEntries(perProvider);
}
