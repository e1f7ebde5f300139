import { execFile } from 'node:child_process';
import { resolve } from 'node:path';

/** How a command has ended. */
export interface Ran {
  code: number;
  stdout: string;
  stderr: string;
}

interface Surroundings {
  cwd?: string;
  environment?: Record<string, string>;
}

const maxMs = 300_000;

/** Runs `docker` and waits for its end; gives its result, also a failure. */
export const tryDocker = (args: string[], surroundings: Surroundings = {}): Promise<Ran> =>
  run('docker', args, surroundings);

/** Runs `docker` and gives what it printed, without the end of the line. Throws what it said when it failed. */
export async function docker(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await tryDocker(args);
  if (code !== 0) throw new Error(`docker ${args.join(' ')}: ${stderr}`);
  return stdout.trim();
}

/** Runs a line of the README in a shell. */
export const shell = (line: string, surroundings: Surroundings): Promise<Ran> =>
  run('sh', ['-c', line], surroundings);

function run(command: string, args: string[], { cwd, environment = {} }: Surroundings): Promise<Ran> {
  const PATH = `${process.env.PATH}:${resolve('test/support/instead-of-curl')}`;
  const env = { PATH, HOME: process.env.HOME, DOCKER_HOST: process.env.DOCKER_HOST, ...environment };
  return new Promise((done) => {
    execFile(command, args, { cwd, env, timeout: maxMs }, (error, stdout, stderr) => {
      done({ code: error === null ? 0 : typeof error.code === 'number' ? error.code : -1, stdout, stderr });
    });
  });
}
