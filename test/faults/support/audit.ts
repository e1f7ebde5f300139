import { setTimeout as delay } from 'node:timers/promises';
import type { ChildProgram } from '../../../dev/child-program.js';
import type { Simulator } from '../../../dev/simulator/server.js';
import { promptCanary, providerKeys } from '../../support/canaries.js';
import { blogToken, type ChatReply, chatToken, type Deployment, password } from '../../support/deployment.js';
import { type Balance, type BooksRules, sumUp } from './balance.js';
import type { JobBoard } from './job-board.js';
import type { Requests } from './requests.js';

interface Audited {
  deployment: Deployment;
  requests: Requests;
  jobs: JobBoard;
  /** Programs that the case itself killed. */
  killed: ReadonlySet<ChildProgram>;
  rules: BooksRules;
  /** The time in which all leftovers have to go away. */
  settleMs: number;
}

/** Waits for the end of all requests, ends the programs, and draws the balance. */
export async function audit({
  deployment,
  requests,
  jobs,
  killed,
  rules,
  settleMs,
}: Audited): Promise<Balance> {
  const { simulator, programs } = deployment;
  await requests.ended();
  const unfinished = await countUntilNone(settleMs, jobs.unfinished);
  const inFlight = await countUntilNone(settleMs, () => simulator.calls.inFlight);
  const exits = await Promise.all(programs.map(endOf));
  const sockets = await countUntilNone(settleMs, () => openSockets(simulator));
  const logs = deployment.logs();
  const answers = requests.entries.flatMap(({ answer }) => answer ?? []);
  const calls = simulator.calls.list().map(({ model = '' }) => model);
  return {
    ...sumUp(requests.entries, calls, rules),
    calls: simulator.calls.lastId,
    leftovers: { jobs: unfinished, calls: inFlight, sockets },
    fatal: unexpectedLines(logs),
    wrongExits: programs.filter((program, n) => exits[n] !== 0 && !killed.has(program)).length,
    leaks: countLeaks(logs, answers),
  };
}

const lookMs = 20;

/** Counts until there is nothing, or this time has passed; gives the last count. */
export async function countUntilNone(
  withinMs: number,
  count: () => Promise<number> | number,
): Promise<number> {
  const until = performance.now() + withinMs;
  for (;;) {
    const left = await Promise.resolve(count()).catch(() => Number.POSITIVE_INFINITY);
    if (left === 0 || performance.now() >= until) return left;
    await delay(lookMs);
  }
}

/** Longer than the grace of every case and the time a program may take to close. */
const graceMs = 17_000;

async function endOf(program: ChildProgram): Promise<number | null> {
  await program.stop({ graceMs });
  return program.exitCode;
}

/** Connections at the simulator, but for the one that asks. */
async function openSockets({ url }: Simulator): Promise<number> {
  const answer = await fetch(`${url}/__simulator/calls/stats`, { headers: { Connection: 'close' } });
  const { openSockets: open } = (await answer.json()) as { openSockets: number };
  return open - 1;
}

/** Other lines than a program's log are stacks or warnings of Node: neither is ever expected. */
export const unexpectedLines = (logs: string): string[] =>
  logs.split('\n').filter((line) => line !== '' && (!line.startsWith('{') || line.includes('"level":60')));

/** In how many problems or lines of the logs a prompt or a secret is to be seen. */
export function countLeaks(logs: string, answers: readonly ChatReply[]): number {
  const problems = answers.filter(({ status }) => status !== 200).map(({ body }) => JSON.stringify(body));
  const secrets = [promptCanary, ...Object.values(providerKeys), password, blogToken, chatToken];
  return [...logs.split('\n'), ...problems].filter((text) => secrets.some((secret) => text.includes(secret)))
    .length;
}
