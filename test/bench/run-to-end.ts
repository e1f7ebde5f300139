import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Lifecycle } from '../../shared/runtime/lifecycle.js';

interface Surroundings {
  cwd: string;
  environment: NodeJS.ProcessEnv;
  /** Stops the program, and whatever it has started, when it closes. */
  lifecycle: Lifecycle;
}

const quotedCharacters = 1500;

/** Runs a program to its end and gives back what it wrote to its output. Throws with its last words when it fails. */
export async function runToEnd(
  command: string,
  args: readonly string[],
  { cwd, environment, lifecycle }: Surroundings,
): Promise<string> {
  lifecycle.stopping.throwIfAborted();
  // A group of its own: npm starts programs, and all of them have to end before their folder is removed.
  const child = spawn(command, args, {
    cwd,
    env: environment,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const ended = once(child, 'close');
  ended.catch(() => undefined);
  lifecycle.opened(command, child, () => stopGroup(child, ended));
  let output = '';
  let words = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
    words += chunk;
  });
  child.stderr.on('data', (chunk) => {
    words += chunk;
  });
  const [code] = await ended;
  if (code === 0) return output;
  const line = [command, ...args].join(' ');
  throw new Error(`${line} failed; its last words:\n${words.slice(-quotedCharacters).trim()}`);
}

async function stopGroup(child: ChildProcess, ended: Promise<unknown>): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  process.kill(-child.pid, 'SIGTERM');
  await ended;
}
