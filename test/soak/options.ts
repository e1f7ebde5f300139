import { parseArgs } from 'node:util';

/** What the command line asks for. */
export interface Options {
  /** How long the load lasts. */
  readonly minutes: number;
  readonly store: 'redis' | 'postgres';
  /** Jobs at once of each provider in each of the two workers. */
  readonly concurrency: number;
  /** A Redis that runs already; absent means a server of the soak's own. */
  readonly redisUrl: string | undefined;
  /** An existing folder where the logs of the processes stay; absent means that they go when it is over. */
  readonly logs: string | undefined;
}

const usage = `npm run soak -- [options]
  --minutes 30           how long the load lasts; memory is judged from 10 minutes on
  --store redis          where the queue lives: redis, or postgres (embedded)
  --concurrency 10       jobs at once of each provider in each of the two workers; the load is half of what they can do
  --redis-url redis://…  an empty database of a running Redis (default: REDIS_URL, else a server of its own)
  --logs DIR             keeps the logs of the processes in this existing folder
`;

/** Reads the command line; `undefined` when it only asked for help. Throws what is wrong with it. */
export function parseOptions(args: readonly string[], environment: NodeJS.ProcessEnv): Options | undefined {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: 'string', default: '30' },
      store: { type: 'string', default: 'redis' },
      concurrency: { type: 'string', default: '10' },
      'redis-url': { type: 'string' },
      logs: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(usage);
    return undefined;
  }
  const { store } = values;
  if (store !== 'redis' && store !== 'postgres') throw new Error('--store: redis or postgres');
  return {
    minutes: numberFrom('--minutes', values.minutes, 0.5),
    store,
    concurrency: Math.round(numberFrom('--concurrency', values.concurrency, 1)),
    redisUrl: values['redis-url'] || environment.REDIS_URL || undefined,
    logs: values.logs,
  };
}

function numberFrom(option: string, text: string, least: number): number {
  const value = Number(text.trim() || Number.NaN);
  if (value >= least && value <= 10_000) return value;
  throw new Error(`${option}: ${text} is not a number from ${least} to 10000`);
}
