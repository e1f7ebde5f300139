import { mkdirSync, writeFileSync } from 'node:fs';
import type { Reporter, TestModule } from 'vitest/node';
import { type StoreChoice, storeOf } from './stores.js';

/** What ran on each store: how it is called for people, and where it is written down for the summary of CI. */
interface StoresReport {
  suite: string;
  file: string;
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
    const failed = tests
      .filter((test) => test.result().state === 'failed')
      .map((test) => `${test.project.name}: ${test.module.relativeModuleId} > ${test.fullName}`);
    // One that cannot be loaded has no tests that could fail.
    const broken = modules
      .filter((module) => module.errors().length > 0)
      .map((module) => `${module.project.name}: ${module.relativeModuleId}`);
    const failures = [...broken, ...failed];
    const report = {
      passed: count(undefined, 'passed'),
      failed: failures.length,
      stores,
      failures,
    };
    mkdirSync('test-results', { recursive: true });
    writeFileSync(this.to.file, `${JSON.stringify(report, undefined, 2)}\n`);
  }
}
