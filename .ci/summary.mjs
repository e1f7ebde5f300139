// Counts what ran from the test runner's own reports, repeats each failure (the output of a run may be cut at its
// beginning), and fails when a suite did not run, or not on both of the queue's stores.
import { existsSync, readFileSync } from 'node:fs';

/** The names of the steps that failed. */
const failedSteps = process.argv.slice(2);
const suites = ['tests', 'release', 'browser', 'containers', 'faults'];

/** The tests of a suite: its file, full name, state, and the first line of what went wrong. */
function read(suite) {
  const file = `test-results/${suite}.json`;
  if (!existsSync(file)) return [];
  const { testResults } = JSON.parse(readFileSync(file, 'utf8'));
  return testResults.flatMap(({ name, status, message, assertionResults }) => {
    const path = name.slice(name.indexOf('/test/') + 1);
    const tests = assertionResults.map(({ fullName, status: state, failureMessages = [] }) => ({
      ...{ suite, path, name: fullName, state },
      problem: failureMessages[0]?.split('\n', 1)[0] ?? '',
    }));
    // A file that could not be loaded, or whose hooks failed, has failed although none of its tests did.
    const isBroken = status === 'failed' && !tests.some(({ state }) => state === 'failed');
    return isBroken
      ? [
          ...tests,
          {
            suite,
            path,
            name: '(outside of its tests)',
            state: 'failed',
            problem: message.split('\n', 1)[0],
          },
        ]
      : tests;
  });
}

const tests = suites.flatMap(read);
const passed = tests.filter(({ state }) => state === 'passed');
const failed = tests.filter(({ state }) => state === 'failed');
const skipped = tests.length - passed.length - failed.length;
const ran = (suite, part = '') => passed.some((test) => test.suite === suite && test.name.includes(part));
const missing = [
  ...suites.filter((suite) => !ran(suite)).map((suite) => `The suite ${suite} did not run.`),
  ...['Redis', 'PostgreSQL']
    .filter((store) => !ran('faults', `with the queue in ${store}`))
    .map((store) => `The catalogue of faults did not run on ${store}.`),
];

const say = (line) => process.stdout.write(`${line}\n`);
for (const { path, name, problem } of failed) say(`Failed: ${path}: ${name}: ${problem}`);
for (const step of failedSteps) say(`Failed step: ${step}`);
for (const line of missing) say(line);
// A step that failed without a failed test (lint, an error that no test caught) counts as one failure of its own.
const suitesWithFailures = new Set(failed.map(({ suite }) => suite)).size;
const count = failed.length + missing.length + Math.max(0, failedSteps.length - suitesWithFailures);
say(`${passed.length} passed, ${count} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
process.exit(count > 0 || passed.length === 0 ? 1 : 0);
