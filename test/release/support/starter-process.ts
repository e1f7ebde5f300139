import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** The message of a starter process that has started the server, or failed to. */
export interface StarterReport {
  url?: string;
  adopted?: boolean;
  failure?: string;
}

/** A process of its own that starts the embedded PostgreSQL. */
export type StarterProcess = ReturnType<typeof spawnStarter>;

/** Spawns a starter for the data folder; with `uid` as that user, which only root can do. */
export function spawnStarter(dataDir: string, { uid }: { uid?: number } = {}) {
  const script = fileURLToPath(new URL('./starter.mjs', import.meta.url));
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', script, dataDir], {
    ...(uid === undefined ? {} : { uid, gid: uid }),
    detached: true,
  });
  child.stderr.pipe(process.stderr);
  const ended = once(child, 'close');
  return {
    report: readReport(child),
    ended,
    /** Sends a signal to the process alone, or to its whole process group as a terminal does. */
    signal: (signal: NodeJS.Signals, scope: 'process' | 'group' = 'process') => {
      process.kill(scope === 'group' ? -pidOf(child) : pidOf(child), signal);
    },
    /** Asks it to stop the server and waits for its end. */
    stop: async () => {
      child.stdin.write('stop\n');
      await ended;
    },
  };
}

async function readReport(child: ChildProcessWithoutNullStreams): Promise<StarterReport> {
  for await (const line of createInterface({ input: child.stdout })) return JSON.parse(line) as StarterReport;
  return { failure: 'ended without a word' };
}

function pidOf(child: ChildProcessWithoutNullStreams): number {
  if (child.pid === undefined) throw new Error('the starter has not been spawned');
  return child.pid;
}
