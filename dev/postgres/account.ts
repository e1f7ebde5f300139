import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, lchownSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** The user Postgres's programs run as, ready to spread into spawn's options; undefined means whoever we are. */
export type Account = { uid: number; gid: number } | undefined;

const nobody = 65534;

/**
 * Chooses the account for the cluster at this path, which may not exist yet. PostgreSQL refuses to run as root, so
 * root runs it as the cluster's owner, or as `postgres` or nobody. Throws when the cluster belongs to somebody else.
 */
export function accountFor(cluster: string): Account {
  const us = process.getuid?.();
  const owner = statSync(cluster, { throwIfNoEntry: false });
  if (us !== 0) {
    if (owner === undefined || owner.uid === us) return undefined;
    throw new Error(`${cluster} belongs to uid ${owner.uid}: start as that user or as root, or delete it`);
  }
  if (owner !== undefined && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  const account = serviceAccount();
  if (owner !== undefined) giveTree(cluster, account);
  return account;
}

function serviceAccount(): { uid: number; gid: number } {
  const entry = /^postgres:[^:]*:([1-9]\d*):(\d+):/m.exec(readFileSync('/etc/passwd', 'utf8'));
  return entry ? { uid: Number(entry[1]), gid: Number(entry[2]) } : { uid: nobody, gid: nobody };
}

function giveTree(root: string, { uid, gid }: { uid: number; gid: number }): void {
  for (const entry of readdirSync(root, { recursive: true, encoding: 'utf8' })) {
    lchownSync(join(root, entry), uid, gid);
  }
  lchownSync(root, uid, gid);
}

/** Throws when one of these paths exists and we may not write it, as when another user has started here before. */
export function assertWritable(paths: readonly string[]): void {
  for (const path of paths) {
    const owner = statSync(path, { throwIfNoEntry: false });
    if (owner === undefined) continue;
    try {
      accessSync(path, constants.W_OK);
    } catch (cause) {
      const message = `cannot write ${path}, it belongs to uid ${owner.uid}: start as that user or as root`;
      throw new Error(message, { cause });
    }
  }
}

/** Makes the account the owner of the file or folder at this path; nothing to do when it is ourselves. */
export function give(path: string, account: Account): void {
  if (account) lchownSync(path, account.uid, account.gid);
}

/**
 * Whether the account can open these paths (for a folder: list and enter it). Asked by trying as that account,
 * because modes alone do not tell about access lists, groups, and folders above.
 */
export function canReach(paths: readonly string[], account: Account): boolean {
  if (account === undefined) return true;
  const script = 'for path; do test -r "$path" && { test ! -d "$path" || test -x "$path"; } || exit 1; done';
  const { status, error } = spawnSync('/bin/sh', ['-c', script, 'sh', ...paths], {
    ...account,
    stdio: 'ignore',
  });
  if (error) throw new Error(`cannot run a program as uid ${account.uid}`, { cause: error });
  return status === 0;
}

/**
 * The path by which a program of the account, started inside the cluster's folder, names that folder.
 *
 * Below a folder only root may enter the account cannot use the real path, but Node changes the working directory
 * while still root, and `/proc/self/cwd` leads there without passing the folders above. All of Postgres's processes
 * stay in that directory for life, so the name holds through crash recovery, parallel workers and reloads alike. The
 * alternative, a cluster outside the project with a link to it, would outlive the project's deletion.
 */
export function pathFromInside(cluster: string, account: Account): string {
  if (canReach([cluster], account)) return cluster;
  if (existsSync('/proc/self/cwd')) return '/proc/self/cwd';
  throw new Error(`uid ${account?.uid} cannot reach ${cluster}`);
}
