import { type Balance, type BooksRules, sumUp } from '../../faults/support/balance.js';
import { countLeaks, countUntilNone, unexpectedLines } from '../../faults/support/books.js';
import type { JobBoard } from '../../faults/support/job-board.js';
import type { CallersEntry } from './callers.js';
import type { ContainerDeployment } from './container-deployment.js';
import type { ProgramContainer } from './program-container.js';

interface Audited {
  deployment: ContainerDeployment;
  entries: readonly CallersEntry[];
  jobs: JobBoard;
  /** The exit codes of the programs that were stopped, and are not running again. */
  exits: ReadonlyMap<ProgramContainer, number>;
  rules: BooksRules;
}

/** The time in which all leftovers have to go away. */
const settleMs = 15_000;

/** Stops the programs that still run, and draws the balance. All requests must have ended. */
export async function auditContainers({
  deployment,
  entries,
  jobs,
  exits,
  rules,
}: Audited): Promise<Balance> {
  const { simulator, programs } = deployment;
  const unfinished = await countUntilNone(jobs.unfinished, settleMs);
  const inFlight = await countUntilNone(simulator.inFlight, settleMs);
  const calls = (await simulator.calls()).map(({ model }) => model);
  await Promise.all(programs.map((program) => exits.get(program) ?? program.stop()));
  const logs = (await Promise.all(programs.map((program) => program.logs()))).join('');
  const answers = entries.flatMap(({ answer }) => answer ?? []);
  return {
    ...sumUp(entries, calls, rules),
    calls: calls.length,
    leftovers: { jobs: unfinished, calls: inFlight },
    fatal: unexpectedLines(logs),
    leaks: countLeaks(logs, answers),
  };
}
