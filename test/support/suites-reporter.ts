import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';
import type { Reporter, SerializedError, TestCase, TestModule } from 'vitest/node';
import { type StoreChoice, storeOf } from './stores.js';

/** The projects of one of npm's scripts. */
export interface Suite {
  /** Name of its report for the summary of CI, `test-results/NAME.json`. */
  readonly name: string;
  /** Title for display. */
  readonly title: string;
  /** The names of vitest's projects. */
  readonly projects: readonly string[];
  readonly stores: readonly StoreChoice[];
}

export const reportOf = (name: string): string => `test-results/${name}.json`;

interface Failed {
  /** The name of the vitest project, which includes the store. */
  project: string;
  file: string;
  /** The test's full title; the file's name when the file could not be loaded. */
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

/** Prints at the end of a run on which stores its suites ran, or why not, and writes a report of each suite. */
export class SuitesReporter implements Reporter {
  constructor(private readonly suites: readonly Suite[]) {}

  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    mkdirSync('test-results', { recursive: true });
    const uncaught = new Map(errors.map((error) => [error.VITEST_TEST_PATH, firstLine(error)]));
    for (const suite of this.suites) {
      const own = modules.filter(({ project }) => suite.projects.includes(project.name));
      if (own.length > 0) report(suite, own, uncaught);
    }
  }
}

/** By the path of a file: the first line of an error that none of its tests caught. */
type Uncaught = ReadonlyMap<unknown, string>;

function report({ name, title, stores }: Suite, modules: readonly TestModule[], uncaught: Uncaught): void {
  const tests = modules.flatMap((module) => [...module.children.allTests()]);
  const count = (store: string | undefined, state: string) =>
    tests.filter((test) => (!store || storeOf(test.project.name) === store) && test.result().state === state)
      .length;
  const counted = stores.map((store) => ({
    name: store.name,
    servedBy: store.servedBy,
    missing: store.missing,
    passed: count(store.name, 'passed'),
    failed: count(store.name, 'failed'),
  }));
  const lines = counted.map((store) =>
    store.passed + store.failed > 0
      ? `  ${store.name}: ${store.passed} passed, ${store.failed} failed (${store.servedBy})`
      : `  ${store.name}: did not run (${store.missing ?? 'not selected'})`,
  );
  if (lines.length > 0) process.stdout.write(`\n${title} by store\n${lines.join('\n')}\n`);
  const result = afterSecondTry(reportOf(name), {
    passed: count(undefined, 'passed'),
    stores: counted,
    failures: [...unloadable(modules), ...broken(modules, uncaught), ...failed(tests)],
    passedAtSecondTry: [],
  });
  writeFileSync(reportOf(name), `${JSON.stringify(result, undefined, 2)}\n`);
}

/** With `SECOND_TRY` set, a run of the files in which a test failed before: counts for those failures alone. */
function afterSecondTry(file: string, now: Report): Report {
  if (process.env.SECOND_TRY === undefined) return now;
  const before: Report = JSON.parse(readFileSync(file, 'utf8'));
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

const failed = (tests: TestCase[]): Failed[] =>
  tests.flatMap((test) => {
    const { state, errors = [] } = test.result();
    const { project, module, fullName } = test;
    const file = module.relativeModuleId;
    return state === 'failed'
      ? [{ project: project.name, file, name: `${file} > ${fullName}`, message: firstLine(errors[0]) }]
      : [];
  });

/** A file that cannot be loaded has no tests, but counts as a failure. */
const unloadable = (modules: readonly TestModule[]): Failed[] =>
  modules.flatMap((module) => {
    const { project, relativeModuleId: file } = module;
    return module.errors().length > 0
      ? [{ project: project.name, file, name: file, message: firstLine(module.errors()[0]) }]
      : [];
  });

/** A file during which an error came that no test caught fails the run, though its tests may have passed. */
const broken = (modules: readonly TestModule[], uncaught: Uncaught): Failed[] =>
  modules.flatMap(({ moduleId, project, relativeModuleId: file }) => {
    const message = uncaught.get(moduleId);
    return message === undefined ? [] : [{ project: project.name, file, name: `${file} > no test`, message }];
  });

const firstLine = (error: { message: string } | undefined): string =>
  stripVTControlCharacters(error?.message ?? '').split('\n', 1)[0] ?? '';
