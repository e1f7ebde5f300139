import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { GenericContainer, getContainerRuntimeClient, ImageName } from 'testcontainers';

/** PostgreSQL's own programs (`pg_dump`, `pg_restore`) of the version of the tests' servers, or a newer one. */
export interface PostgresClients {
  /** Runs a shell command in the folder they were opened for; rejects with its output when it fails. */
  run(line: string, variables: Record<string, string>): Promise<void>;
  close(): Promise<void>;
}

/** Where the clients come from, or why there are none: npm's package has only the server. */
export type PostgresClientsChoice =
  | { readonly open: (folder: string) => Promise<PostgresClients>; readonly missing?: undefined }
  | { readonly open?: undefined; readonly missing: string };

const image = 'postgres:18-alpine';
const majorVersion = 18;
const execute = promisify(execFile);

/** The clients on the PATH if they are new enough, else those of a container. */
export async function findPostgresClients(): Promise<PostgresClientsChoice> {
  if (await isOnPath()) return { open: async (folder) => onPath(folder) };
  if (await isInDocker()) return { open: inContainer };
  return { missing: `no pg_dump ${majorVersion} on the PATH, and no Docker engine that can run ${image}` };
}

async function isOnPath(): Promise<boolean> {
  const { stdout } = await execute('pg_dump', ['--version']).catch(() => ({ stdout: '' }));
  return Number(/ (\d+)\./.exec(stdout)?.[1] ?? 0) >= majorVersion;
}

async function isInDocker(): Promise<boolean> {
  try {
    const client = await getContainerRuntimeClient();
    return await client.image.exists(ImageName.fromString(image));
  } catch {
    return false;
  }
}

const onPath = (cwd: string): PostgresClients => ({
  run: async (line, variables) => {
    await execute('sh', ['-c', line], { cwd, env: { PATH: process.env.PATH, ...variables } });
  },
  close: async () => undefined,
});

/** On the host's network, because the tests' servers listen only on the loopback address. */
async function inContainer(folder: string): Promise<PostgresClients> {
  process.env.TESTCONTAINERS_RYUK_DISABLED ??= 'true';
  const container = await new GenericContainer(image)
    .withNetworkMode('host')
    .withBindMounts([{ source: folder, target: '/backup' }])
    .withEntrypoint(['sleep', '300'])
    .start();
  return {
    run: async (line, env) => {
      const { exitCode, output } = await container.exec(['sh', '-c', line], { workingDir: '/backup', env });
      if (exitCode !== 0) throw new Error(output);
    },
    close: async () => void (await container.stop()),
  };
}
