import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../free-port.js';
import { exitOf } from '../process-exit.js';
import { type Installation, programEnvironment } from './cluster.js';
import { probeServer, type ServerState } from './database.js';
import {
  changeOwner,
  findPostmaster,
  markOf,
  type Postmaster,
  pathFromInside,
  removeStalePidFile,
  stopPostmaster,
} from './postmaster-process.js';

const readyWithinMs = 60_000;
// A killed postmaster's children keep its shared memory for a second or two, and another program may take the free
// port.
const launchingForMs = 8_000;
const launchPauseMs = 200;
const pollMs = 10;
const quotedLogBytes = 1_000;

/** A postmaster that accepted our credentials. */
interface ReadyPostmaster {
  postmaster: Postmaster;
  state: Extract<ServerState, 'ready' | 'no database'>;
  /** Undefined when it was adopted. */
  launch: Launch | undefined;
}

/**
 * Adopts the cluster's running postmaster or launches one, and waits until it answers at the URL for its port. Throws
 * when it refuses our credentials, is not ready within a minute, or keeps exiting; a launched one is stopped then. Must
 * run under the lock.
 */
export async function startOrAdopt(installation: Installation, urlOfPort: (port: number) => string) {
  const attempt: StartAttempt = { startedAt: Date.now(), launch: undefined };
  try {
    while (Date.now() < attempt.startedAt + readyWithinMs) {
      const ready = await takeStep(attempt, installation, urlOfPort);
      if (ready) return ready;
      await delay(pollMs);
    }
    throw new Error(`PostgreSQL is not ready after a minute, see ${installation.log}`);
  } catch (error) {
    if (attempt.launch?.isRunning()) await attempt.launch.stop();
    throw error;
  }
}

/** Takes the next step that the cluster's state requires; returns the postmaster once it answers. */
async function takeStep(
  attempt: StartAttempt,
  installation: Installation,
  urlOfPort: (port: number) => string,
): Promise<ReadyPostmaster | undefined> {
  const postmaster = findPostmaster(installation.cluster);
  if (postmaster?.ready) {
    const state = await probeServer(urlOfPort(postmaster.port));
    if (state === 'refused') throw new Error(`the server does not accept ${installation.passwordFile}`);
    if (state !== 'unreachable')
      return {
        postmaster,
        state,
        launch: postmaster.pid === attempt.launch?.pid ? attempt.launch : undefined,
      };
  } else if (!postmaster && !attempt.launch?.isRunning()) {
    if (attempt.launch) await pauseUnlessTooLate(attempt.launch, attempt.startedAt);
    removeStalePidFile(installation.cluster);
    attempt.launch = await launchPostmaster(installation);
  }
  return undefined;
}

interface StartAttempt {
  startedAt: number;
  launch: Launch | undefined;
}

type Launch = Awaited<ReturnType<typeof launchPostmaster>>;

async function pauseUnlessTooLate(launch: Launch, startedAt: number): Promise<void> {
  if (Date.now() > startedAt + launchingForMs) throw new Error(`PostgreSQL exits: ${launch.logTail()}`);
  await delay(launchPauseMs);
}

async function launchPostmaster(installation: Installation) {
  const { cluster, log, binaries, account, port } = installation;
  const logStart = statSync(log, { throwIfNoEntry: false })?.size ?? 0;
  const output = openSync(log, 'a', 0o600);
  changeOwner(log, account);
  const options = ['-D', pathFromInside(cluster, account), '-p', String(port ?? (await freePort()))];
  try {
    // Detached: in its own session, so that Ctrl-C in the terminal does not reach it and it can be stopped in order.
    const child = spawn(join(binaries, 'bin', 'postgres'), [...options, ...settingsOf(cluster)], {
      ...account,
      cwd: cluster,
      env: programEnvironment,
      detached: true,
      stdio: ['ignore', output, output],
    });
    const exit = exitOf(child);
    await once(child, 'spawn');
    child.unref();
    return {
      pid: child.pid,
      exit,
      isRunning: () => child.exitCode === null && child.signalCode === null,
      stop: async () => stopPostmaster(child.pid ?? 0, markOf(cluster)),
      logTail: () => readFileSync(log).subarray(logStart).subarray(-quotedLogBytes).toString().trim(),
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
