import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../free-port.js';
import { give, pathFromInside } from './account.js';
import { type Installation, programEnvironment } from './cluster.js';
import { type Answer, askServer } from './database.js';
import {
  discardMisleadingPidFile,
  findPostmaster,
  markOf,
  type Postmaster,
  stopPostmaster,
} from './postmaster-process.js';

const readyWithinMs = 60_000;
// A killed postmaster's children hold its shared memory for a second or two, and a free port may be taken from us.
const launchesWithinMs = 8_000;
const betweenLaunchesMs = 200;
const pollMs = 10;
const quotedLogBytes = 1_000;

/** A postmaster that answered our credentials. */
export interface AnsweringPostmaster {
  postmaster: Postmaster;
  /** Whether the database of the URL is there. */
  answer: Extract<Answer, 'ready' | 'no database'>;
  /** Whether it was running before. */
  adopted: boolean;
}

/**
 * Adopts the cluster's running postmaster or launches one, and waits until it answers at the URL made for its port.
 * Throws when it refuses our credentials, does not become ready within a minute, or keeps exiting; what was launched
 * is stopped then. Must run under the lock.
 */
export async function startOrAdopt(
  installation: Installation,
  urlOfPort: (port: number) => string,
): Promise<AnsweringPostmaster> {
  const attempt: StartAttempt = { startedAt: Date.now(), launch: undefined };
  try {
    while (Date.now() < attempt.startedAt + readyWithinMs) {
      const answering = await takeStep(attempt, installation, urlOfPort);
      if (answering) return answering;
      await delay(pollMs);
    }
    throw new Error(`PostgreSQL is not ready after a minute, see ${installation.log}`);
  } catch (error) {
    if (attempt.launch?.isRunning()) await attempt.launch.stop();
    throw error;
  }
}

/** Looks at the cluster and does what its state calls for; gives the postmaster once it answers. */
async function takeStep(
  attempt: StartAttempt,
  installation: Installation,
  urlOfPort: (port: number) => string,
): Promise<AnsweringPostmaster | undefined> {
  const postmaster = findPostmaster(installation.cluster);
  if (postmaster?.ready) {
    const answer = await askServer(urlOfPort(postmaster.port));
    if (answer === 'refused') throw new Error(`the server does not accept ${installation.passwordFile}`);
    if (answer !== 'silent') return { postmaster, answer, adopted: postmaster.pid !== attempt.launch?.pid };
  } else if (!postmaster && !attempt.launch?.isRunning()) {
    if (attempt.launch) await pauseUnlessHopeless(attempt.launch, attempt.startedAt);
    discardMisleadingPidFile(installation.cluster);
    attempt.launch = await launchPostmaster(installation);
  }
  return undefined;
}

interface StartAttempt {
  startedAt: number;
  launch: Launch | undefined;
}

interface Launch {
  pid: number | undefined;
  isRunning(): boolean;
  stop(): Promise<void>;
  /** What it has logged, the end of it. */
  lastWords(): string;
}

async function pauseUnlessHopeless(launch: Launch, startedAt: number): Promise<void> {
  if (Date.now() > startedAt + launchesWithinMs) throw new Error(`PostgreSQL exits: ${launch.lastWords()}`);
  await delay(betweenLaunchesMs);
}

async function launchPostmaster(installation: Installation): Promise<Launch> {
  const { cluster, log, binaries, account } = installation;
  const logStart = statSync(log, { throwIfNoEntry: false })?.size ?? 0;
  const output = openSync(log, 'a', 0o600);
  give(log, account);
  const options = ['-D', pathFromInside(cluster, account), '-p', String(await freePort())];
  try {
    // Detached: in a session of its own, so that Ctrl-C in the terminal reaches us only and we can stop it in order.
    const child = spawn(join(binaries, 'bin', 'postgres'), [...options, ...settingsOf(cluster)], {
      ...account,
      cwd: cluster,
      env: programEnvironment,
      detached: true,
      stdio: ['ignore', output, output],
    });
    await once(child, 'spawn');
    child.unref();
    return {
      pid: child.pid,
      isRunning: () => child.exitCode === null && child.signalCode === null,
      stop: async () => stopPostmaster(child.pid ?? 0, markOf(cluster)),
      lastWords: () => readFileSync(log).subarray(logStart).subarray(-quotedLogBytes).toString().trim(),
    };
  } finally {
    closeSync(output);
  }
}

function settingsOf(cluster: string): string[] {
  const settings = [
    markOf(cluster),
    'listen_addresses=127.0.0.1',
    'unix_socket_directories=',
    'max_connections=300',
    'shared_buffers=128MB',
    'fsync=on',
    'log_checkpoints=off',
  ];
  return settings.flatMap((setting) => ['-c', setting]);
}
