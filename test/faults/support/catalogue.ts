import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ChildProgram } from '../../../dev/child-program.js';
import { withTimeout } from '../../../shared/runtime/retry.js';
import { type Deployment, startDeployment } from '../../support/deployment.js';
import { patienceMs } from '../../support/patience.js';
import { type StoreKind, type StoreServer, storeOf } from '../../support/stores.js';
import { type BooksRules, balanced } from './balance.js';
import { type Books, countUntilNone, openBooks } from './books.js';
import { type JobBoard, openJobBoard } from './job-board.js';

/** The deployment that the cases of a file share. */
export interface Setting {
  /** 1 by default. */
  workers?: number;
  /** A profile, and what the cases add to it. */
  variables: Record<string, string>;
  /** A server that these cases may kill, freeze and configure; the run's server of the kind by default. */
  store?: (kind: StoreKind) => Promise<StoreServer & { stop(): Promise<void> }>;
  /** Whether the programs start while the store is down, after `down` has been called. */
  down?: () => Promise<void>;
}

/** A case: its name begins with its id in the catalogue, such as "W1 a worker killed in a call → another answers". */
export interface Rules extends BooksRules {
  /** Where the queue lives in this case; on Redis alone by default. */
  stores?: readonly StoreKind[];
}

export const bothStores: readonly StoreKind[] = ['redis', 'postgres'];

interface Case {
  readonly name: string;
  readonly rules: Rules;
  readonly run: (books: Books) => Promise<void>;
}

/** Adds a case to a catalogue. Its requests go through the books, which have to balance at its end. */
export type AddCase = (name: string, rules: Rules, run: (books: Books) => Promise<void>) => void;

const titles: Record<StoreKind, string> = { redis: 'Redis', postgres: 'PostgreSQL' };

/**
 * Cases that share a deployment, one after the other. For each store that a case names there is one deployment; what a
 * case has killed is started again after it, and what it has started beside the deployment is ended. At the end every
 * program has to end with 0, with no connection left at a provider.
 */
export function catalogue(setting: Setting, define: (add: AddCase) => void): void {
  const cases: Case[] = [];
  define((name, rules, run) => void cases.push({ name, rules, run }));
  for (const kind of bothStores) {
    const chosen = cases.filter(({ rules: { stores = ['redis'] } }) => stores.includes(kind));
    if (chosen.length > 0) describe(`with the queue in ${titles[kind]}`, () => runAll(setting, kind, chosen));
  }
}

/** A case that does not end fails before vitest gives it up: what it leaves behind has to be cleared away. */
const limitMs = 120_000;

function runAll(setting: Setting, kind: StoreKind, cases: readonly Case[]) {
  let world: World | undefined;
  beforeAll(async () => {
    world = await startWorld(setting, kind);
  });
  afterAll(() => world?.end());
  for (const { name, rules, run } of cases)
    it(name, async () => {
      if (world === undefined) throw new TypeError('the deployment was not started');
      const books = openBooks({ ...world, id: name.split(' ', 1)[0] ?? name });
      const failure = await withTimeout(limitMs, run(books)).then(
        () => undefined,
        (error: unknown) => ({ error }),
      );
      const balance = await books.close({ rules, failed: failure !== undefined });
      if (failure) throw failure.error;
      expect(balance, `the books: ${JSON.stringify(balance)}`).toMatchObject(balanced(rules));
    });
}

/** The deployment that the cases of one store share. */
interface World {
  readonly deployment: Deployment;
  readonly jobs: JobBoard;
  readonly server: StoreServer;
  /** Programs that cases have killed. */
  readonly killed: Set<ChildProgram>;
  /** The models that cases have asked for. */
  readonly earlier: Set<string>;
  end(): Promise<void>;
}

async function startWorld({ store, down, ...options }: Setting, kind: StoreKind): Promise<World> {
  const own = await store?.(kind);
  const server = own ?? storeOf(kind);
  const deployment = await startDeployment({
    ...options,
    store: server,
    ...(down && { withoutStore: down }),
  });
  const jobs = openJobBoard(deployment);
  // In time for its first use; but BullMQ's queue in PostgreSQL never recovers from having been opened without it.
  if (down === undefined) await jobs.ready();
  const killed = new Set<ChildProgram>();
  const end = async () => {
    await jobs.close();
    await Promise.all(deployment.programs.map((program) => program.stop({ graceMs: patienceMs })));
    const wrongExits = await exitsOf(deployment.programs.filter((program) => !killed.has(program)));
    const sockets = await countUntilNone(() => openSockets(deployment));
    await deployment.stop();
    await own?.stop();
    expect({ wrongExits, sockets }).toEqual({ wrongExits: [], sockets: 0 });
  };
  return { deployment, jobs, server, killed, earlier: new Set<string>(), end };
}

/** The exit codes of programs, but for 0. */
const exitsOf = async (programs: readonly ChildProgram[]): Promise<(number | null)[]> =>
  (await Promise.all(programs.map(({ exitCode }) => exitCode))).filter((code) => code !== 0);

/** Connections at the simulator, but for the one that asks. */
async function openSockets({ simulator: { url } }: Deployment): Promise<number> {
  const answer = await fetch(`${url}/__simulator/calls/stats`, { headers: { Connection: 'close' } });
  const { openSockets: open } = (await answer.json()) as { openSockets: number };
  return open - 1;
}
