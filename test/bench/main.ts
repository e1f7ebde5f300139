import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Lifecycle } from '../../shared/runtime/lifecycle.js';
import { createLog } from '../../shared/runtime/log.js';
import { compareBlog } from './blog/compare.js';
import { type Beside, compareChat } from './chat.js';
import { checkOut } from './checkout.js';
import { measureLedger } from './ledger.js';
import { type Options, parseOptions, usage } from './options.js';
import { newPlace, type Place } from './programs.js';
import { measurePromises } from './promises.js';
import { describeCompared, describeConditions, describeRound, loadAverage } from './report.js';
import type { Compared, Round } from './rows.js';
import { soak } from './soak.js';
import { describeStore, type StoreName } from './stores.js';

const log = createLog({ program: 'bench', level: 'silent' });
const print = (text: string): void => void process.stdout.write(text);

/** What compares with nothing. */
function aloneOf({ ledger, minutes, promises }: Options, place: Place) {
  if (ledger !== undefined) return () => measureLedger(ledger, place, print);
  if (promises) return (store: StoreName) => measurePromises(store, place, print);
  return minutes === undefined ? undefined : (store: StoreName) => soak(minutes, store, place, print);
}

/** Gives whether all is as it should be: no row slower than the other commit's, no promise missed, nothing left over. */
async function bench(place: Place): Promise<boolean> {
  const options = parseOptions(process.argv.slice(2));
  const { against, rounds, seconds } = options;
  const served = options.stores.map((name) => [name, describeStore(name)] as const);
  const stores = served.flatMap(([name, by]) => (by === undefined ? [] : [name]));
  const store = stores.at(-1);
  if (store === undefined) throw new Error('no redis-server or valkey-server on the PATH');
  const baseline = against === undefined ? undefined : await checkOut(against, newPlace(place, 'against'));
  const measureAlone = aloneOf(options, place);
  const conditions = {
    ...Object.fromEntries(served.map(([name, by]) => [name, by ?? 'cannot run here'])),
    ...(baseline && { baseline: baseline.title }),
    ...(measureAlone === undefined && {
      runs: `rounds: ${rounds}, in each all sides of every row in turns, ${seconds} s each`,
    }),
  };
  print(describeConditions(conditions));
  if (measureAlone !== undefined) return measureAlone(store);
  const compared: Compared[] = [];
  const add = async (title: string, run: (deps: Beside) => Promise<Compared[]>) => {
    const lifecycle = place.lifecycle.opened(title, new Lifecycle(log), (open) => open.close());
    const own = { place: { ...newPlace(place, title), lifecycle }, stopping: lifecycle.stopping };
    const onRound = (row: string, round: Round) => print(describeRound(row, round));
    const parts = await run({ options, rounds, seconds, title, ...own, baseline: baseline?.root, onRound });
    await lifecycle.close();
    print(parts.map(describeCompared).join(''));
    compared.push(...parts);
  };
  for (const subject of (['chat', 'long'] as const).filter((each) => options.subjects.includes(each)))
    for (const name of stores) {
      const title = `${subject === 'long' ? 'long chat' : 'chat'} on ${name}`;
      await add(title, async (deps) => [await compareChat(name, deps, subject)]);
    }
  if (options.subjects.includes('blog')) await add('blog', compareBlog);
  print(`Load average after: ${loadAverage()}\n`);
  const verdicts = compared.flatMap(({ rows }) => rows.map(({ verdict }) => verdict));
  return against === undefined || !verdicts.includes('slower');
}

// Also when a signal ends it: figures of half a comparison speak for nobody.
let exitCode = 2;
process.on('exit', () => {
  process.exitCode = exitCode;
});
const lifecycle = new Lifecycle(log);
lifecycle.closeOnSignals({ graceMs: 60_000 });
const dir = mkdtempSync(join(tmpdir(), 'quillgate-bench-'));
lifecycle.opened('temporary folder', dir, (path) => rmSync(path, { recursive: true, force: true }));
try {
  if (process.argv.includes('--help')) print(`${usage}\n`);
  exitCode = process.argv.includes('--help') || (await bench({ lifecycle, dir })) ? 0 : 1;
} catch (error) {
  if (!lifecycle.stopping.aborted) process.stderr.write(`${(error as Error).message}\n`);
} finally {
  await lifecycle.close();
}
