import { randomUUID } from 'node:crypto';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../../dev/free-port.js';
import { docker, type Ran, shell, tryDocker } from './docker.js';

/** A copy of what compose needs, under a project name and a port of its own. */
export interface ComposeProject {
  readonly dir: string;
  readonly name: string;
  /** Runs a line of the README here; throws what it said when it failed. */
  run(line: string): Promise<string>;
  /** Runs `docker compose` here, however it ends. */
  tryCompose(...args: string[]): Promise<Ran>;
  compose(...args: string[]): Promise<string>;
  /** Every container of a service, also stopped ones. */
  containers(service: string): Promise<string[]>;
  /** Removes the rest. */
  remove(): Promise<void>;
}

/** Makes a project in a folder of its own, whose image is built under this name, with these variables. */
export async function openComposeProject(
  image: string,
  variables: Record<string, string> = {},
): Promise<ComposeProject> {
  const dir = mkdtempSync(join(tmpdir(), 'quillgate-test-'));
  const others = ['docker-compose.yml', 'Dockerfile', '.dockerignore', 'deploy/make-credentials'];
  for (const part of [...others, ...partsOfContext()])
    if (existsSync(part)) cpSync(part, join(dir, part), { recursive: true });
  const name = `quillgate-test-${randomUUID().slice(0, 8)}`;
  const port = `${await freePort()}`;
  const environment = { COMPOSE_PROJECT_NAME: name, PORT: port, QUILLGATE_IMAGE: image, ...variables };
  const there = { cwd: dir, environment };
  const tryCompose = (...args: string[]) => tryDocker(['compose', ...args], there);
  const project: ComposeProject = {
    dir,
    name,
    run: async (line) =>
      said(line, await shell(line.replaceAll('localhost:3000', `localhost:${port}`), there)),
    tryCompose,
    compose: async (...args) => said(args.join(' '), await tryCompose(...args)),
    containers: async (service) => {
      const filters = [`project=${name}`, `service=${service}`].flatMap((filter) => [
        '--filter',
        `label=com.docker.compose.${filter}`,
      ]);
      return (await docker('ps', '--all', '--quiet', ...filters)).split('\n').filter(Boolean);
    },
    remove: async () => {
      await tryCompose('down', '--volumes', '--timeout', '5');
      rmSync(dir, { recursive: true });
    },
  };
  return project;
}

/** The files that `.dockerignore` lets in. */
const partsOfContext = (): string[] =>
  readFileSync('.dockerignore', 'utf8')
    .split('\n')
    .flatMap((line) => (line.startsWith('!') ? [line.slice(1)] : []));

function said(command: string, { code, stdout, stderr }: Ran): string {
  if (code !== 0) throw new Error(`${command} ended with ${code}: ${stderr}`);
  return stdout.trim();
}
