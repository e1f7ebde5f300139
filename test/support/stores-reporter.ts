import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';
import type { Reporter, TestCase, TestModule } from 'vitest/node';
import { type StoreChoice, storeOf } from './stores.js';

/** What ran on each store: how it is called for people, and where it is written down for the summary of CI. */
interface StoresReport {
  suite: string;
  file: string;
}

interface Failed {
  /** The name of vitest's project, which tells the store. */
  project: string;
  file: string;
  /** What the test says of itself; the file's name again when that could not be loaded. */
  name: string;
  /** The first line of the error. */
  message: string;
}

interface Report {
  passed: number;
  stores: { name: string; passed: number }[];
  failures: Failed[];
  passedAtSecondTry: Failed[];
}

/** Says at the end of a run which stores a suite ran on, and which it did not and why. */
export class StoresReporter implements Reporter {
  constructor(
    private readonly stores: readonly StoreChoice[],
    private readonly to: StoresReport = {
      suite: 'Whole-path suite',
      file: 'test-results/summary.json',
    },
  ) {}

  onTestRunEnd(modules: readonly TestModule[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const count = (project: string | undefined, state: string) =>
      tests.filter(
        (test) => (!project || storeOf(test.project.name) === project) && test.result().state === state,
      ).length;
    const stores = this.stores.map(({ name, servedBy, missing }) => ({
      name,
      servedBy,
      missing,
      passed: count(name, 'passed'),
      failed: count(name, 'failed'),
    }));
    const lines = stores.map(({ name, servedBy, missing, passed, failed }) =>
      passed + failed > 0
        ? `  ${name}: ${passed} passed, ${failed} failed (${servedBy})`
        : `  ${name}: did not run (${missing ?? 'not selected'})`,
    );
    process.stdout.write(`\n${this.to.suite} by store\n${lines.join('\n')}\n`);
    const report = this.#afterSecondTry({
      passed: count(undefined, 'passed'),
      stores,
      failures: [...unloadable(modules), ...failed(tests)],
      passedAtSecondTry: [],
    });
    mkdirSync('test-results', { recursive: true });
    writeFileSync(this.to.file, `${JSON.stringify(report, undefined, 2)}\n`);
  }

  /** With `SECOND_TRY` set, a run of the files in which a test failed before: counts for those failures alone. */
  #afterSecondTry(now: Report): Report {
    if (process.env.SECOND_TRY === undefined) return now;
    const before: Report = JSON.parse(readFileSync(this.to.file, 'utf8'));
    const failsStill = ({ project, name }: Failed) =>
      now.passed === 0 || now.failures.some((other) => other.project === project && other.name === name);
    const passedAtSecondTry = before.failures.filter((failure) => !failsStill(failure));
    return {
      passed: before.passed + passedAtSecondTry.length,
      stores: before.stores,
      failures: before.failures.filter(failsStill),
      passedAtSecondTry,
    };
  }
}

const failed = (tests: TestCase[]): Failed[] =>
  tests.flatMap((test) => {
    const { state, errors = [] } = test.result();
    const { project, module, fullName } = test;
    const file = module.relativeModuleId;
    return state === 'failed'
      ? [{ project: project.name, file, name: `${file} > ${fullName}`, message: firstLine(errors[0]) }]
      : [];
  });

/** A file that cannot be loaded has no tests that could fail. */
const unloadable = (modules: readonly TestModule[]): Failed[] =>
  modules.flatMap((module) => {
    const { project, relativeModuleId: file } = module;
    return module.errors().length > 0
      ? [{ project: project.name, file, name: file, message: firstLine(module.errors()[0]) }]
      : [];
  });

const firstLine = (error: { message: string } | undefined): string =>
  stripVTControlCharacters(error?.message ?? '').split('\n', 1)[0] ?? '';
