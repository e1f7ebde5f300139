import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { familyOf } from './processes.js';

/** `npm start`, or what it executes, as a process at the head of a process group of its own. */
export type StartProcess = ReturnType<typeof spawnStart>;

interface StartOptions {
  /** Working directory; where `.env` is read. Without it, through `npm start` in the project. */
  cwd?: string;
  environment: Record<string, string>;
  /** Options of the command. */
  args?: string[];
}

const project = resolve('.');
const lastLine = 'Ctrl-C stops everything; the data stays.\n';

/** Starts it. It sees the given environment and a PATH, nothing else. */
export function spawnStart({ cwd, environment, args = [] }: StartOptions) {
  const [command, ...start] = cwd ? [resolve(project, 'bin/quillgate'), 'start'] : ['npm', 'start', '--'];
  const child = spawn(command, [...start, ...args], {
    cwd: cwd ?? project,
    env: { PATH: process.env.PATH, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const pid = pidOf(child);
  const stdout = collect(child.stdout);
  const stderr = collect(child.stderr);
  const ended = once(child, 'close').then(([code, signal]) => ({
    code,
    signal,
    stdout: stdout.text(),
    stderr: stderr.text(),
  }));
  const endedBefore = ended.then((ending) => Promise.reject(new Error(JSON.stringify(ending))));
  const up = Promise.race([stdout.until(lastLine), endedBefore]);
  // A start that is meant to fail is judged by how it ended.
  for (const waiting of [up, endedBefore]) waiting.catch(() => undefined);
  return {
    pid,
    /** Resolves with what was printed once it says that all is up; rejects with it when it ends before. */
    up,
    ended,
    /** Resolves when these words are on its stderr; rejects when it ends before. */
    says: (words: string) => Promise.race([stderr.until(words), endedBefore]),
    /** Sends a signal to the process alone, or to its whole group as a terminal does. */
    signal: (signal: NodeJS.Signals, scope: 'process' | 'group' = 'process') =>
      process.kill(scope === 'group' ? -pid : pid, signal),
    /** Closes the reader of its output, as a closed terminal does. */
    hangUp: () => {
      child.stdout.destroy();
      child.stderr.destroy();
    },
    /** It and everything it has started, PostgreSQL too. */
    family: () => familyOf(pid),
  };
}

function collect(stream: Readable): { text(): string; until(words: string): Promise<string> } {
  let text = '';
  stream.setEncoding('utf8').on('data', (piece: string) => {
    text += piece;
  });
  const until = (words: string) =>
    new Promise<string>((found) => {
      const look = () => {
        if (!text.includes(words)) return;
        stream.off('data', look);
        found(text);
      };
      stream.on('data', look);
      look();
    });
  return { text: () => text, until };
}

function pidOf({ pid }: ChildProcess): number {
  if (pid === undefined) throw new Error('not spawned');
  return pid;
}
