import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { patienceMs } from './patience.js';

/** How a command has ended. */
export interface Ran {
  code: number;
  stdout: string;
  stderr: string;
}

const launcher = resolve('bin/quillgate');

/** Runs `quillgate` as an operator does, in a folder without a configuration, and waits until it has ended. */
export function quillgate(args: string[], environment: Record<string, string>): Promise<Ran> {
  const cwd = mkdtempSync(join(tmpdir(), 'quillgate-test-'));
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  return new Promise((done) => {
    const options = {
      cwd,
      env: { PATH, ...(NODE_COMPILE_CACHE && { NODE_COMPILE_CACHE }), ...environment },
      timeout: patienceMs,
    };
    execFile(launcher, args, options, (error, stdout, stderr) => {
      rmSync(cwd, { recursive: true });
      const code = error === null ? 0 : Number(error.code);
      done({ code, stdout, stderr });
    });
  });
}
