import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Lifecycle } from '../../shared/runtime/lifecycle.js';
import { createLog } from '../../shared/runtime/log.js';
import { describeMachine } from '../bench/conditions.js';
import { findEmbeddedStore } from '../bench/embedded-store.js';
import { findRedisStore } from '../bench/redis-store.js';
import { describeConditionList } from '../bench/report.js';
import { storeTitles } from '../bench/store.js';
import { type Options, parseOptions } from './options.js';
import { describeSample, describeSetup, describeSoak } from './report.js';
import { runSoak } from './run.js';
import type { Sample } from './samples.js';
import { capacityPerSecond } from './service.js';
import { judge } from './verdicts.js';

const stopWithinMs = 60_000;
const log = createLog({ program: 'soak', level: 'silent' });
const print = (text: string): boolean => process.stdout.write(text);

/** `npm run soak`: half load with some faults for long; memory, gauges and books, and the comparison with the aims. */
async function soak(options: Options, lifecycle: Lifecycle, dir: string): Promise<boolean> {
  const choice = await (options.store === 'redis'
    ? findRedisStore(options.redisUrl, 'none')
    : findEmbeddedStore(dir));
  const perSecond = capacityPerSecond(options.concurrency) / 2;
  print(
    describeConditionList([
      ...describeMachine(),
      [storeTitles[choice.name], choice.servedBy],
      ...describeSetup(options, perSecond),
    ]),
  );
  const store = await choice.open(lifecycle, dir);
  const onSample = (sample: Sample) => print(describeSample(sample));
  const result = await runSoak({
    options,
    perSecond,
    store,
    lifecycle,
    logs: options.logs ?? dir,
    log,
    onSample,
  });
  const aims = judge(result);
  print(describeSoak(result, aims));
  return aims.every(({ verdict }) => verdict !== 'not met');
}

async function main(): Promise<void> {
  const options = parseOptions(process.argv.slice(2), process.env);
  if (options === undefined) return;
  const lifecycle = new Lifecycle(log);
  lifecycle.closeOnSignals({ graceMs: stopWithinMs });
  // npm passes on the Ctrl-C that the terminal has sent already, and a second one must not cut the stopping short.
  process.on('SIGINT', () => undefined);
  const dir = mkdtempSync(join(tmpdir(), 'quillgate-soak-'));
  lifecycle.opened('temporary folder', dir, (path) => rmSync(path, { recursive: true, force: true }));
  try {
    const own = join(dir, options.store);
    mkdirSync(own);
    if (!(await soak(options, lifecycle, own))) process.exitCode = 1;
  } catch (error) {
    if (!lifecycle.stopping.aborted) throw error;
  } finally {
    await lifecycle.close();
  }
}

main().catch((error: Error) => {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
});
