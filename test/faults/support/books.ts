import { setTimeout as delay } from 'node:timers/promises';
import type { ChildProgram } from '../../../dev/child-program.js';
import { promptCanary, providerKeys } from '../../support/canaries.js';
import {
  blogToken,
  type ChatCall,
  type ChatReply,
  chatToken,
  type Deployment,
  password,
} from '../../support/deployment.js';
import { patienceMs } from '../../support/patience.js';
import type { StoreServer } from '../../support/stores.js';
import { type Balance, type BooksRules, markOf, sumUp } from './balance.js';
import { createCompletions } from './completions.js';
import type { JobBoard } from './job-board.js';
import { balanceLedger } from './ledger.js';
import { createRequests } from './requests.js';
import { createStreams } from './streams.js';

/** Keeps count of the requests of one case, whose marks no other case has. */
export type Books = Omit<ReturnType<typeof openBooks>, 'close'>;

interface BooksDeps {
  deployment: Deployment;
  /** The queues, seen from outside. */
  jobs: JobBoard;
  /** Where the deployment has its queue. */
  server: StoreServer;
  /** The id of the case in the catalogue. */
  id: string;
  /** Programs that were killed on purpose. */
  killed: Set<ChildProgram>;
  /** The models of earlier cases: what a caller left as its case ended may be called a moment later. */
  earlier: Set<string>;
}

/** Two cases may have the same id. */
let opened = 0;

/** Opens the books of a case. */
export function openBooks({ id, deployment, jobs, server, killed, earlier }: BooksDeps) {
  opened += 1;
  const requests = createRequests(`${id}.${opened}`, deployment);
  const resources = new AsyncDisposableStack();
  const firstCall = deployment.simulator.calls.lastId;
  const logs = deployment.logsFromNow();
  const since = Date.now();
  let mayBeLost = 0;
  const books = {
    ...{ deployment, jobs, server },
    /** The lines that the programs have logged since the case began. */
    logs,
    /** Sends a request whose model has a mark of its own behind an `@`, unless it has one already. */
    ask: (call: ChatCall = {}) => requests.ask(call),
    /** The same, for the answer alone. */
    chat: (call: ChatCall = {}) => requests.ask(call).reply,
    /** Asks for a chat completion with a tool, in the same way. */
    complete: createCompletions(requests, deployment),
    /** Asks for a stream, in the same way. */
    stream: createStreams(requests, deployment),
    /** Sends a request in another way, with a mark in the same way. */
    send: (how: (model: string) => Promise<ChatReply>, named?: string): Promise<ChatReply> => {
      const { model, entry } = requests.enter(named);
      const reply = how(model);
      requests.settle(entry, reply);
      return reply;
    },
    /** Kills a program without a word to it, and waits until it is gone. */
    kill: async (program: ChildProgram | undefined): Promise<void> => {
      if (program === undefined) throw new TypeError('no such program');
      killed.add(program);
      process.kill(program.pid, 'SIGKILL');
      await program.exitCode;
    },
    /** The store fails under load: a run may be lost of each request that is on its way. */
    mayLoseOpen: (): void => {
      mayBeLost += requests.open();
    },
    /** Runs at the end of the case; the last one first. */
    release: (step: () => Promise<void> | void): void => resources.defer(step),
  };

  /** Waits for the end of all requests, restores the deployment, and draws the balance. */
  const close = async ({ rules, failed }: { rules: BooksRules; failed: boolean }): Promise<Balance> => {
    const withinMs = failed ? 2000 : patienceMs;
    if (failed) requests.leaveAll();
    await requests.ended();
    await resources.disposeAsync();
    const unfinished = await countUntilNone(jobs.unfinished, withinMs);
    const inFlight = await countUntilNone(() => deployment.simulator.calls.inFlight, withinMs);
    const asked = new Set(requests.entries.map(({ model }) => model));
    const made = deployment.simulator.calls.list({ since: firstCall }).map(({ model = '' }) => model);
    const calls = made.filter((model) => asked.has(model) || !earlier.has(model));
    for (const model of asked) earlier.add(model);
    await deployment.restore();
    const outbox = await countUntilNone(jobs.outboxEntries, withinMs);
    const marks = [...new Set([...asked].flatMap((model) => markOf(model) ?? []))];
    const ledger = await balanceLedger({
      ...{ stores: deployment.stores, since, marks },
      calledModels: calls,
      callsPerStart: rules.callsPerStart ?? 1,
    });
    const answers = requests.entries.flatMap(({ answer }) => answer ?? []);
    return {
      ...sumUp(requests.entries, calls, rules),
      leftovers: { jobs: unfinished, calls: inFlight, outbox },
      ledger: { ...ledger, lost: Math.max(0, ledger.lost - mayBeLost) },
      fatal: unexpectedLines(logs()),
      leaks: countLeaks(logs(), answers),
    };
  };
  return { ...books, close };
}

const lookMs = 20;

/** Counts until there is nothing, or this time has passed; gives the last count. */
export async function countUntilNone(
  count: () => Promise<number> | number,
  withinMs = patienceMs,
): Promise<number> {
  const until = performance.now() + withinMs;
  for (;;) {
    const left = await Promise.resolve()
      .then(count)
      .catch(() => Number.POSITIVE_INFINITY);
    if (left === 0 || performance.now() >= until) return left;
    await delay(lookMs);
  }
}

/** Other lines than a program's log are stacks or warnings of Node: neither is ever expected. */
const unexpectedLines = (logs: string): string[] =>
  logs
    .split('\n')
    .filter((line) => line !== '' && (!line.startsWith('{') || /"level":60|unexpected error/.test(line)));

/** In how many problems or lines of the logs a prompt or a secret is to be seen. */
function countLeaks(logs: string, answers: readonly ChatReply[]): number {
  const problems = answers.filter(({ status }) => status !== 200).map(({ body }) => JSON.stringify(body));
  const secrets = [promptCanary, ...Object.values(providerKeys), password, blogToken, chatToken];
  return [...logs.split('\n'), ...problems].filter((text) => secrets.some((secret) => text.includes(secret)))
    .length;
}
