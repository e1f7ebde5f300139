// Asks the registry for known vulnerabilities of the production dependencies. Exit code 0: none that is high or
// critical; 1: some are, and here they are, or npm could not even ask; 3: the registry gave no answer, so nothing is
// known.
import { spawnSync } from 'node:child_process';

const unanswered = 3;

const { stdout } = spawnSync(
  'npm',
  ['audit', '--omit=dev', '--json', '--fetch-retries=0', '--fetch-timeout=20000'],
  {
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
    stdio: ['ignore', 'pipe', 'ignore'],
  },
);
const report = parse(stdout);
// npm says what came of its request; of what is wrong here, such as the lockfile, it gives a code alone.
if (report?.message !== undefined) {
  process.stderr.write(
    "NOT AUDITED: the registry's audit service gave no answer. Run it again where it can be reached.\n",
  );
  process.exit(unanswered);
}
if (report?.vulnerabilities === undefined) {
  process.stderr.write(`NOT AUDITED: npm audit failed: ${report?.error?.summary ?? 'it said nothing'}\n`);
  process.exit(1);
}
const found = Object.values(report.vulnerabilities);
for (const { name, severity, via } of found) {
  const titles = via.map((cause) => cause.title ?? `through ${cause}`);
  process.stdout.write(`${severity}: ${name}: ${titles.join('; ')}\n`);
}
const grave = found.filter(({ severity }) => severity === 'high' || severity === 'critical');
process.stdout.write(
  `Audited: ${found.length} packages with known vulnerabilities, ${grave.length} high or critical.\n`,
);
process.exit(grave.length > 0 ? 1 : 0);

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
