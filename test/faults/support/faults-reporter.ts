import { mkdirSync, writeFileSync } from 'node:fs';
import type { Reporter, TestCase } from 'vitest/node';
import { storeOf } from '../../support/stores.js';
import type { Balance } from './balance.js';
import type { FaultRecord } from './fault.js';

interface Told extends FaultRecord {
  store: string;
  passed: boolean;
  tookMs: number;
}

/** Tells of every case what was injected, what came out and whether the books balance; all of them again at the end. */
export class FaultsReporter implements Reporter {
  readonly #told: Told[] = [];

  onTestCaseResult(test: TestCase): void {
    const { fault } = test.meta();
    if (fault === undefined) return;
    const told = {
      ...fault,
      store: storeOf(test.project.name),
      passed: test.result().state === 'passed',
      tookMs: Math.round(test.diagnostic()?.duration ?? 0),
    };
    this.#told.push(told);
    process.stdout.write(
      `\n${told.id} on ${told.store}: ${told.injected}\n` +
        `  came out: ${told.cameOut ?? 'the case failed'}\n  books:    ${inWords(told.balance)}\n` +
        (told.firstTry === undefined ? '' : `  second try, at the first: ${told.firstTry}\n`),
    );
  }

  onTestRunEnd(): void {
    if (this.#told.length === 0) return;
    const rows = this.#told.map((told) => [
      told.id,
      told.store,
      told.passed ? `stood${told.firstTry === undefined ? '' : ', second try'}` : 'FAILED',
      `${(told.tookMs / 1000).toFixed(1)} s`,
      inWords(told.balance),
    ]);
    const widths = [0, 1, 2, 3].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
    const lines = rows.flatMap((row, n) => [
      row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '),
      ...unexpectedOf(this.#told[n]?.balance),
    ]);
    process.stdout.write(`\nFaults and their books\n  ${lines.join('\n  ')}\n`);
    mkdirSync('test-results', { recursive: true });
    const kind = this.#told.some(({ store }) => store.startsWith('redis-')) ? '-redis-topologies' : '';
    writeFileSync(`test-results/fault-cases${kind}.json`, `${JSON.stringify(this.#told, undefined, 2)}\n`);
  }
}

/** Enough to see which program died of what. */
const unexpectedOf = (balance: Balance | undefined): string[] =>
  (balance?.fatal ?? []).slice(0, 20).map((line) => `      ${line.slice(0, 200)}`);

function inWords(balance: Balance | undefined): string {
  if (balance === undefined) return 'nothing was sent';
  const { sent, answers, left, unanswered, calls, repeated, leftovers } = balance;
  const answered = Object.entries(answers).map(([code, count]) => `${count} ${code}`);
  const others = [left > 0 && `${left} left`, unanswered > 0 && `${unanswered} unanswered`];
  const outcomes = [...answered, ...others].filter(Boolean).join(', ');
  const wrong = [
    ...Object.entries(leftovers).map(([what, count]) => [`${what} left over`, count] as const),
    ['overcalled', balance.overcalled] as const,
    ['flaws of streams', balance.flaws.length] as const,
    ['lines of unexpected errors', balance.fatal.length] as const,
    ['wrong exits', balance.wrongExits] as const,
    ['leaks', balance.leaks] as const,
  ].flatMap(([what, count]) => (count > 0 ? [`${count} ${what}`] : []));
  const ends = wrong.length > 0 ? wrong.join(', ') : 'nothing left over';
  return `${sent} sent (${outcomes || 'none answered'}), ${calls} calls (${repeated} repeated), ${ends}`;
}
