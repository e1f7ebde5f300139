import { parseArgs } from 'node:util';

/** The stores the benchmark knows. */
export const storeNames = ['embedded', 'redis'] as const;

export type StoreName = (typeof storeNames)[number];

/** What can be measured. */
export const subjectNames = ['chat', 'blog', 'blog-peer', 'streams', 'in-flight', 'api-processes'] as const;

export type Subject = (typeof subjectNames)[number];

/** The gateways that ours can be measured beside. */
export const peerNames = ['portkey'] as const;

export type PeerName = (typeof peerNames)[number];

/** Whether the ratios to the other gateway are compared with the recorded ones, or recorded. */
export type Guard = 'compare' | 'record';

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
  /** How many chats are held in flight, and how long the simulated provider takes for each. */
  readonly inFlight: readonly { readonly connections: number; readonly latencyMs: number }[];
  /** How many API processes share a load, one number after the other. */
  readonly apis: readonly number[];
  /** Length of each measured run. */
  readonly seconds: number;
  /** How often each row is measured on each side, where there are sides. */
  readonly rounds: number;
  /** A Redis that runs already; absent means a server of the benchmark's own. */
  readonly redisUrl: string | undefined;
  /** Where the results go as JSON. */
  readonly json: string | undefined;
  /** The commit to compare with; absent means that this checkout alone is measured. */
  readonly against: string | undefined;
  /** The gateway to measure in turns with ours. */
  readonly peer: PeerName | undefined;
  readonly guard: Guard | undefined;
}

const usage = `npm run bench -- [options]
  --only chat,blog               what is measured: chat, blog, blog-peer (the blog in turns with a bare Express on the
                                 same posts), streams, in-flight (with --peer), api-processes
  --stores embedded,redis        chat and streams: which stores of the queue
  --connections 1,32,128,1000    chat: how many clients at once
  --latencies 0,500              chat: how long the simulated provider takes, in milliseconds
  --streams 1,100,500            streams: how many at once
  --in-flight 1000:2000,5000:15000
                                 in-flight: how many chats at once, and the milliseconds of the simulated provider; each
                                 for five times as long as that
  --apis 1,4,16                  api-processes: how many share a load, to see what each asks of Redis
  --seconds 10                   length of each measured run
  --redis-url redis://…          an empty database of a running Redis (default: REDIS_URL, else a server of its own
                                 from redis-server or valkey-server on the PATH)
  --json FILE                    writes the results there as well
  --against COMMIT               compares with that commit instead, in turns; then the defaults are
                                 --connections 1,32,128 --latencies 0 --seconds 1, and each side has stores of its own.
                                 Exits with 1 when a row is slower in every round by more than 5 %
  --peer portkey                 measures in turns with another gateway, which npm fetches, and with the simulator alone;
                                 then the defaults are --only chat,streams --stores redis --latencies 0,60,500 --seconds 3,
                                 and Redis keeps an AOF
  --guard                        a short run with --peer portkey: exits with 1 when requests/s or CPU time beside it have become
                                 worse than recorded by more than 15 %, and with 2 when that could not be measured
  --record                       with --guard: records instead
  --rounds 4                     how often each row is measured on each side; by default 4 with --against, 5 with --peer or
                                 --guard, 2 for streams and blog-peer
`;

const known = {
  only: { type: 'string' },
  stores: { type: 'string' },
  connections: { type: 'string' },
  latencies: { type: 'string' },
  streams: { type: 'string', default: '1,100,500' },
  'in-flight': { type: 'string', default: '1000:2000,5000:15000' },
  apis: { type: 'string', default: '1,4,16' },
  seconds: { type: 'string' },
  'redis-url': { type: 'string' },
  json: { type: 'string' },
  against: { type: 'string' },
  peer: { type: 'string' },
  guard: { type: 'boolean', default: false },
  record: { type: 'boolean', default: false },
  rounds: { type: 'string' },
  help: { type: 'boolean', default: false },
} as const;

/** What is done when nothing else is asked for. */
const defaults = {
  alone: {
    ...{ only: 'chat,blog', stores: storeNames.join(',') },
    ...{ connections: '1,32,128,1000', latencies: '0,500', seconds: '10', rounds: '2' },
  },
  against: {
    ...{ only: 'chat,blog', stores: storeNames.join(',') },
    ...{ connections: '1,32,128', latencies: '0', seconds: '1', rounds: '4' },
  },
  peer: {
    ...{ only: 'chat,streams', stores: 'redis' },
    ...{ connections: '1,32,128,1000', latencies: '0,60,500', seconds: '3', rounds: '5' },
  },
  guard: {
    ...{ only: 'chat', stores: 'redis', peer: 'portkey' },
    ...{ connections: '1,32,128', latencies: '0', seconds: '2', rounds: '5' },
  },
};

/** Reads the command line; `undefined` when it only asked for help. Throws what is wrong with it, in one sentence. */
export function parseOptions(args: readonly string[], environment: NodeJS.ProcessEnv): Options | undefined {
  const asked = parseValues(args);
  if (asked.help) {
    process.stdout.write(usage);
    return undefined;
  }
  const mode = modeOf(asked);
  const values = { ...defaults[mode], ...asked };
  const subjects = values.only.split(',').map((text) => nameIn(subjectNames, '--only', text));
  checkTogether(asked, mode, subjects);
  return {
    subjects,
    streams: values.streams.split(',').map((text) => wholeNumber('--streams', text, 1, 10_000)),
    stores: values.stores.split(',').map((text) => nameIn(storeNames, '--stores', text)),
    connections: values.connections.split(',').map((text) => wholeNumber('--connections', text, 1, 20_000)),
    latenciesMs: values.latencies.split(',').map((text) => wholeNumber('--latencies', text, 0, 30_000)),
    inFlight: values['in-flight'].split(',').map(flightOf),
    apis: values.apis.split(',').map((text) => wholeNumber('--apis', text, 1, 64)),
    seconds: wholeNumber('--seconds', values.seconds, 1, 600),
    rounds: wholeNumber('--rounds', values.rounds, 1, 1000),
    redisUrl: mode === 'alone' ? values['redis-url'] || environment.REDIS_URL || undefined : undefined,
    json: values.json,
    against: values.against?.trim(),
    peer: values.peer === undefined ? undefined : nameIn(peerNames, '--peer', values.peer),
    guard: guardOf(values),
  };
}

type Values = ReturnType<typeof parseValues>;
type Mode = keyof typeof defaults;

function modeOf({ against, peer, guard }: Values): Mode {
  if (against !== undefined && peer !== undefined) throw new Error('--peer: does not go with --against');
  if (against !== undefined && guard) throw new Error('--guard: does not go with --against');
  if (guard) return 'guard';
  if (against !== undefined) return 'against';
  return peer === undefined ? 'alone' : 'peer';
}

function guardOf({ guard, record }: Values): Guard | undefined {
  if (guard) return record ? 'record' : 'compare';
  if (record) throw new Error('--record: goes with --guard');
  return undefined;
}

/** What can be measured in each mode. */
const fitting: Readonly<Record<Mode, readonly Subject[]>> = {
  alone: ['chat', 'blog', 'blog-peer', 'streams', 'api-processes'],
  against: ['chat', 'blog'],
  peer: ['chat', 'streams', 'in-flight'],
  guard: ['chat'],
};

/** Throws when one option makes no sense beside another. */
function checkTogether(values: Values, mode: Mode, subjects: readonly Subject[]): void {
  const subject = subjects.find((each) => !fitting[mode].includes(each));
  if (subject !== undefined)
    throw new Error(
      `--only: ${subject} ${mode === 'alone' ? 'goes with --peer' : `does not go with --${mode}`}`,
    );
  const chosen = (['only', 'stores', 'connections', 'latencies'] as const).find((name) => values[name]);
  if (mode === 'guard' && chosen)
    throw new Error(`--${chosen}: does not go with --guard, whose rows are always the same`);
  if (values.against?.trim() === '') throw new Error('--against: names no commit');
  if (mode !== 'alone' && values['redis-url'] !== undefined)
    throw new Error(`--redis-url: does not go with --${mode}, which starts servers of its own`);
  const hasRounds = subjects.some((each) => each === 'streams' || each === 'blog-peer');
  if (mode === 'alone' && values.rounds !== undefined && !hasRounds)
    throw new Error('--rounds: goes with --against, --peer, streams or blog-peer');
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

function flightOf(text: string): Options['inFlight'][number] {
  const [connections = '', latencyMs = '', ...rest] = text.split(':');
  if (rest.length > 0) throw new Error(`--in-flight: ${text} is not connections:milliseconds`);
  return {
    connections: wholeNumber('--in-flight', connections, 1, 10_000),
    latencyMs: wholeNumber('--in-flight', latencyMs, 1, 30_000),
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
