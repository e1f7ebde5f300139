import { parseArgs } from 'node:util';

/** The stores the benchmark knows. */
export const storeNames = ['embedded', 'redis'] as const;

export type StoreName = (typeof storeNames)[number];

/** What can be measured. */
export const subjectNames = ['chat', 'blog', 'streams'] as const;

export type Subject = (typeof subjectNames)[number];

/** What the command line asks for. */
export interface Options {
  readonly subjects: readonly Subject[];
  readonly stores: readonly StoreName[];
  /** How many connections send chat requests at once; one run for each. */
  readonly connections: readonly number[];
  /** How long the simulated provider takes, in milliseconds; one series of runs for each. */
  readonly latenciesMs: readonly number[];
  /** How many streams at once; each is run in turns. */
  readonly streams: readonly number[];
  /** Length of each measured run. */
  readonly seconds: number;
  /** A Redis that runs already; absent means a server of the benchmark's own. */
  readonly redisUrl: string | undefined;
  /** Where the results go as JSON. */
  readonly json: string | undefined;
  /** The commit to compare with; absent means that this checkout alone is measured. */
  readonly against: Against | undefined;
}

/** What is compared with, and how often. */
export interface Against {
  readonly commit: string;
  readonly rounds: number;
}

const usage = `npm run bench -- [options]
  --only chat,blog               what is measured: chat, blog, streams (whose run fetches another gateway from npm, to stand beside)
  --stores embedded,redis        chat and streams: which stores of the queue
  --connections 1,32,128,1000    chat: how many clients at once
  --latencies 0,500              chat: how long the simulated provider takes, in milliseconds
  --streams 1,100,500            streams: how many at once
  --seconds 10                   length of each measured run
  --redis-url redis://…          an empty database of a running Redis (default: REDIS_URL, else a server of its own
                                 from redis-server or valkey-server on the PATH)
  --json FILE                    writes the results there as well
  --against COMMIT               compares with that commit instead, in turns; then the defaults are
                                 --connections 1,32,128 --latencies 0 --seconds 1, and each side has stores of its own.
                                 Exits with 1 when a row is slower in every round by more than 5 %
  --rounds 4                     with --against: how often each row is measured on each side
`;

const known = {
  only: { type: 'string', default: 'chat,blog' },
  stores: { type: 'string', default: storeNames.join(',') },
  connections: { type: 'string' },
  latencies: { type: 'string' },
  streams: { type: 'string', default: '1,100,500' },
  seconds: { type: 'string' },
  'redis-url': { type: 'string' },
  json: { type: 'string' },
  against: { type: 'string' },
  rounds: { type: 'string' },
  help: { type: 'boolean', default: false },
} as const;

/** The runs that are done when nothing else is asked for; a comparison does each of them eight times. */
const defaults = {
  alone: { connections: '1,32,128,1000', latencies: '0,500', seconds: '10' },
  against: { connections: '1,32,128', latencies: '0', seconds: '1' },
};

const defaultRounds = '4';

/** Reads the command line; `undefined` when it only asked for help. Throws what is wrong with it, in one sentence. */
export function parseOptions(args: readonly string[], environment: NodeJS.ProcessEnv): Options | undefined {
  const values = parseValues(args);
  if (values.help) {
    process.stdout.write(usage);
    return undefined;
  }
  const against = againstOf(values);
  const { connections, latencies, seconds } = { ...defaults[against ? 'against' : 'alone'], ...values };
  const subjects = values.only.split(',').map((text) => nameIn(subjectNames, '--only', text));
  if (against && subjects.includes('streams')) throw new Error('--only: streams does not go with --against');
  return {
    subjects,
    streams: values.streams.split(',').map((text) => wholeNumber('--streams', text, 1, 10_000)),
    stores: values.stores.split(',').map((text) => nameIn(storeNames, '--stores', text)),
    connections: connections.split(',').map((text) => wholeNumber('--connections', text, 1, 20_000)),
    latenciesMs: latencies.split(',').map((text) => wholeNumber('--latencies', text, 0, 5000)),
    seconds: wholeNumber('--seconds', seconds, 1, 600),
    redisUrl: against ? undefined : values['redis-url'] || environment.REDIS_URL || undefined,
    json: values.json,
    against,
  };
}

function parseValues(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: known }).values;
  } catch (cause) {
    // What follows in Node's message is advice.
    const [sentence] = (cause as Error).message.split(/\.?\n|\. /);
    throw new Error(sentence, { cause });
  }
}

function againstOf(values: ReturnType<typeof parseValues>): Against | undefined {
  const { against, rounds } = values;
  if (against === undefined) {
    if (rounds !== undefined) throw new Error('--rounds: goes with --against');
    return undefined;
  }
  if (against.trim() === '') throw new Error('--against: names no commit');
  if (values['redis-url'] !== undefined)
    throw new Error('--redis-url: does not go with --against, where each checkout has a server of its own');
  return { commit: against.trim(), rounds: wholeNumber('--rounds', rounds ?? defaultRounds, 1, 1000) };
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
