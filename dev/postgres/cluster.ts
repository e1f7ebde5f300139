import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type Account, changeOwner, pathFromInside } from './postmaster-process.js';

/** The one role of the cluster, its superuser. */
export const roleName = 'quillgate';

/** The files, the folders and the port of an embedded server, and the account of its programs. */
export interface Installation {
  cluster: string;
  log: string;
  passwordFile: string;
  binaries: string;
  account: Account;
  /** Where it is to listen; undefined for any free port. */
  port: number | undefined;
}

/** The whole environment of PostgreSQL's programs, so that no setting of the shell changes the cluster. */
export const programEnvironment = { LC_ALL: 'C', TZ: 'UTC' };

// The second choice is PostgreSQL's own locale, for operating systems without C.UTF-8 (macOS).
const localeChoices = [
  ['--locale=C.UTF-8'],
  ['--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'],
];

/** Creates the cluster and its password unless they exist, and returns the password. Must run under the lock. */
export async function ensureCluster(installation: Installation): Promise<string> {
  const { cluster, passwordFile } = installation;
  if (!existsSync(join(cluster, 'PG_VERSION'))) await createCluster(installation);
  if (!existsSync(passwordFile))
    throw new Error(`${passwordFile} is missing: restore it, or delete ${cluster} as well`);
  return readFileSync(passwordFile, 'utf8').trim();
}

async function createCluster(installation: Installation): Promise<void> {
  const { cluster, account } = installation;
  if (existsSync(cluster) && readdirSync(cluster).length > 0) {
    throw new Error(`${cluster} holds something that is not a PostgreSQL cluster: delete it`);
  }
  removeLeftovers(cluster);
  writePassword(installation);
  // A new name each time: the initdb of a start that was killed may still be running in its folder.
  const unfinished = mkdtempSync(`${cluster}.new-`);
  changeOwner(unfinished, account);
  try {
    await initdb(unfinished, installation);
    renameSync(unfinished, cluster);
  } finally {
    removeLeftovers(cluster);
  }
}

function removeLeftovers(cluster: string): void {
  const prefix = `${basename(cluster)}.new-`;
  for (const name of readdirSync(dirname(cluster))) {
    if (name.startsWith(prefix))
      rmSync(join(dirname(cluster), name), { recursive: true, force: true, maxRetries: 5 });
  }
}

function writePassword({ passwordFile, account }: Installation): void {
  const unfinished = `${passwordFile}.new`;
  rmSync(unfinished, { force: true });
  writeFileSync(unfinished, `${randomBytes(32).toString('base64url')}\n`, { mode: 0o600, flag: 'wx' });
  changeOwner(unfinished, account);
  renameSync(unfinished, passwordFile);
}

async function initdb(folder: string, installation: Installation): Promise<void> {
  const failures: string[] = [];
  for (const localeOptions of localeChoices) {
    const failure = await runInitdb({ ...installation, folder, localeOptions });
    if (failure === undefined) return;
    failures.push(failure);
  }
  throw new Error(`initdb failed: ${failures.join(' Then: ')}`);
}

/** Returns initdb's error output, or undefined when it succeeded. When it fails it leaves the folder empty. */
async function runInitdb(task: Installation & { folder: string; localeOptions: string[] }) {
  const { folder, passwordFile, binaries, account, localeOptions } = task;
  const options = [
    `--pgdata=${pathFromInside(folder, account)}`,
    `--username=${roleName}`,
    '--pwfile=/dev/fd/3',
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    ...localeOptions,
  ];
  // Passed as an open file, because the account may not be able to read it by its path.
  const password = openSync(passwordFile, 'r');
  try {
    // Detached, so that Ctrl-C in the terminal does not look like a failure of initdb: it takes less than a second.
    const child = spawn(join(binaries, 'bin', 'initdb'), options, {
      ...account,
      cwd: folder,
      env: programEnvironment,
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe', password],
    });
    const complaints = child.stderr ? text(child.stderr) : '';
    const [code, signal] = await once(child, 'close');
    return code === 0 ? undefined : (await complaints).trim() || `ended by ${signal ?? `code ${code}`}.`;
  } finally {
    closeSync(password);
  }
}
