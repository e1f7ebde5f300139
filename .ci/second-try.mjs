// Prints which files of a suite to run once more: those in which a test failed. Fails when there are none, or when it
// was no matter of time.
import { readFileSync } from 'node:fs';

const { failures } = JSON.parse(readFileSync(process.argv[2], 'utf8'));
// So many are no accident, and a request lost or doubled is none either.
const maxFailures = 10;
const isNoAccident =
  failures.length > maxFailures || failures.some(({ message }) => message.includes('books'));
if (failures.length === 0 || isNoAccident) process.exit(1);
const projects = new Set(failures.map(({ project }) => `--project=${project}`));
const files = new Set(failures.map(({ file }) => file));
process.stdout.write([...projects, ...files].join('\n'));
