import { parseArgs } from 'node:util';

/** The stores the benchmark knows. */
export const storeNames = ['embedded', 'redis'] as const;

export type StoreName = (typeof storeNames)[number];

/** What can be measured. */
export const subjectNames = ['chat', 'blog'] as const;

export type Subject = (typeof subjectNames)[number];

/** What the command line asks for. */
export interface Options {
  readonly subjects: readonly Subject[];
  readonly stores: readonly StoreName[];
  /** How many connections send chat requests at once; one run for each. */
  readonly connections: readonly number[];
  /** How long the simulated provider takes, in milliseconds; one series of runs for each. */
  readonly latenciesMs: readonly number[];
  /** Length of each measured run. */
  readonly seconds: number;
  /** A Redis that runs already; absent means a server of the benchmark's own. */
  readonly redisUrl: string | undefined;
  /** Where the results go as JSON. */
  readonly json: string | undefined;
}

const usage = `npm run bench -- [options]
  --only chat,blog               what is measured
  --stores embedded,redis        chat: which stores of the queue
  --connections 1,32,128,1000    chat: how many clients at once
  --latencies 0,500              chat: how long the simulated provider takes, in milliseconds
  --seconds 10                   length of each measured run
  --redis-url redis://…          an empty database of a running Redis (default: REDIS_URL, else a server of its own
                                 from redis-server or valkey-server on the PATH)
  --json FILE                    writes the results there as well
`;

/** Reads the command line; `undefined` when it only asked for help. Throws what is wrong with it. */
export function parseOptions(args: readonly string[], environment: NodeJS.ProcessEnv): Options | undefined {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: 'string', default: subjectNames.join(',') },
      stores: { type: 'string', default: storeNames.join(',') },
      connections: { type: 'string', default: '1,32,128,1000' },
      latencies: { type: 'string', default: '0,500' },
      seconds: { type: 'string', default: '10' },
      'redis-url': { type: 'string' },
      json: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(usage);
    return undefined;
  }
  return {
    subjects: values.only.split(',').map((text) => nameIn(subjectNames, '--only', text)),
    stores: values.stores.split(',').map((text) => nameIn(storeNames, '--stores', text)),
    connections: values.connections.split(',').map((text) => wholeNumber('--connections', text, 1, 20_000)),
    latenciesMs: values.latencies.split(',').map((text) => wholeNumber('--latencies', text, 0, 5000)),
    seconds: wholeNumber('--seconds', values.seconds, 1, 600),
    redisUrl: values['redis-url'] || environment.REDIS_URL || undefined,
    json: values.json,
  };
}

function nameIn<Name extends string>(names: readonly Name[], option: string, text: string): Name {
  const name = names.find((known) => known === text.trim());
  if (name === undefined) throw new Error(`${option}: ${text} is none of ${names.join(', ')}`);
  return name;
}

function wholeNumber(option: string, text: string, least: number, most: number): number {
  const value = Number(text.trim() || Number.NaN);
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new Error(`${option}: ${text} is not a whole number from ${least} to ${most}`);
}
