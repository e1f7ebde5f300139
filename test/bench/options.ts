import { parseArgs } from 'node:util';
import { storeNames } from './stores.js';

/** For people. */
export const usage = `npm run bench -- [options]
  (nothing)               chat and blog of this checkout under load
  --against COMMIT        in turns with another commit; exits with 1 when a row is slower by more than 5 % in every round
  --peer portkey          chat in turns with Portkey's gateway, which npm fetches, and with the simulator alone
  --peer express          the blog in turns with a bare Express on the same posts
  --promises              the promised times and shares; exits with 1 when one is missed
  --minutes 30            a soak: half load with faults; exits with 1 when memory grows or something is left over
  --ledger 10             the ledger with ten million chats, 20 GB on the disk; exits with 1 when a page takes too long

  --only chat,long,blog   what is measured; long: chats with bodies of 1 and 8 MiB
  --stores embedded,redis where the queue is; promises and soak take the last that runs here
  --connections 1,32,128  how many callers send chats at once
  --latencies 0           how long the simulated provider takes for a chat, in milliseconds
  --seconds 4             length of each measurement
  --rounds 8              how often each row is measured on each side

OPENAI_WIRE=chat has OpenAI asked as before 0.9, for a comparison with that.`;

const text = { type: 'string' } as const;
const options = {
  ...{ against: text, peer: text, minutes: text, ledger: text, promises: { type: 'boolean' } as const },
  ...{
    only: text,
    stores: text,
    connections: text,
    latencies: text,
    seconds: text,
    rounds: text,
  },
} as const;

const stores = storeNames.join(',');
const common = { only: 'chat,long,blog', stores, connections: '1,32,128', latencies: '0' };
const defaults = {
  alone: { ...common, connections: '1,32,128,1000', latencies: '0,500', seconds: '10', rounds: '1' },
  against: { ...common, seconds: '4', rounds: '8' },
  portkey: { ...common, only: 'chat', stores: 'redis', latencies: '0,60,500', seconds: '3', rounds: '5' },
  express: { ...common, only: 'blog', connections: '2,32', seconds: '3', rounds: '5' },
};

/** What the command line asks for. */
export type Options = ReturnType<typeof parseOptions>;

/** Reads the command line. Throws what is wrong with it, in one sentence. */
export function parseOptions(args: readonly string[]) {
  const { values } = parseArgs({ args: [...args], options });
  const { against, minutes, ledger, promises = false } = values;
  const modes = (['against', 'peer', 'promises', 'minutes', 'ledger'] as const).filter(
    (name) => values[name] !== undefined,
  );
  if (modes.length > 1) throw new Error(`--${modes[1]}: does not go with --${modes[0]}`);
  const [peer] =
    values.peer === undefined ? [] : namesIn('--peer', values.peer, ['portkey', 'express'] as const);
  const asked = { ...defaults[peer ?? (against === undefined ? 'alone' : 'against')], ...values };
  return {
    ...{ against, peer, promises },
    minutes: minutes === undefined ? undefined : numbersIn('--minutes', minutes)[0],
    ledger: ledger === undefined ? undefined : numbersIn('--ledger', ledger)[0],
    subjects: namesIn('--only', asked.only, ['chat', 'long', 'blog'] as const),
    stores: namesIn('--stores', asked.stores, storeNames),
    connections: numbersIn('--connections', asked.connections),
    latenciesMs: numbersIn('--latencies', asked.latencies, 0),
    seconds: numbersIn('--seconds', asked.seconds)[0] ?? 1,
    rounds: numbersIn('--rounds', asked.rounds)[0] ?? 1,
  };
}

function namesIn<Name extends string>(option: string, list: string, names: readonly Name[]): Name[] {
  const found = list.split(',').map((part) => names.find((name) => name === part));
  if (found.includes(undefined)) throw new Error(`${option}: ${list} is not of ${names.join(', ')}`);
  return found as Name[];
}

function numbersIn(option: string, list: string, least = 1): number[] {
  const found = list.split(',').map((part) => Number(part.trim() || Number.NaN));
  if (found.every((value) => Number.isInteger(value) && value >= least && value <= 100_000)) return found;
  throw new Error(`${option}: ${list} is not a whole number from ${least} on`);
}
