import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, type TestContext, vi } from 'vitest';
import { freePort } from '../../../dev/free-port.js';
import { environmentSchema } from '../../../shared/config/config.js';
import { type StartProcess, spawnStart } from './npm-start.js';
import { type SeenProcess, stillRunning } from './processes.js';
import { serverProcesses } from './server-facts.js';

/** A folder to start in, with ports of its own. */
export interface Place {
  readonly dir: string;
  readonly dataDir: string;
  readonly environment: Record<string, string>;
  start(variables?: Record<string, string>, args?: string[]): StartProcess;
  startWithNpm(): StartProcess;
}

/**
 * A fresh folder. A process that was started there and is left at the end is stopped, and fails the test.
 */
export async function openPlace({ onTestFinished }: Pick<TestContext, 'onTestFinished'>): Promise<Place> {
  const dir = mkdtempSync(join(tmpdir(), 'quillgate start-'));
  const dataDir = join(dir, '.data');
  mkdirSync(dataDir);
  const [PORT, WORKER_PORT, SIMULATOR_PORT] = (await Promise.all([freePort(), freePort(), freePort()])).map(
    String,
  );
  const environment = { PORT, WORKER_PORT, SIMULATOR_PORT } as Record<string, string>;
  const started: StartProcess[] = [];
  const track = (one: StartProcess) => {
    started.push(one);
    return one;
  };
  onTestFinished(async () => {
    for (const one of started) {
      const family = one.family();
      if (family.length > 0) one.signal('SIGTERM');
      await one.ended;
      await gone(family);
    }
    if (existsSync(join(dataDir, 'postgres'))) expect(serverProcesses(dataDir)).toEqual([]);
    rmSync(dir, { recursive: true });
  });
  const nothingElse = Object.fromEntries(Object.keys(environmentSchema.shape).map((name) => [name, '']));
  return {
    dir,
    dataDir,
    environment,
    start: (variables, args = []) =>
      track(spawnStart({ cwd: dir, args, environment: { ...environment, ...variables } })),
    // The project's own .env must not matter.
    startWithNpm: () =>
      track(spawnStart({ environment: { ...nothingElse, ...environment, HOME: dir, DATA_DIR: dataDir } })),
  };
}

/** Resolves when none of these processes runs any more. */
export const gone = (family: SeenProcess[]) =>
  vi.waitFor(() => expect(stillRunning(family)).toEqual([]), { timeout: 60_000, interval: 20 });
