import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, lchownSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** The user that PostgreSQL's programs run as, as options of `spawn`; undefined means the current user. */
export type Account = { uid: number; gid: number } | undefined;

const nobody = 65534;

/**
 * Chooses the account for the cluster at this path, which may not exist yet. PostgreSQL refuses to run as root, so
 * root runs it as the cluster's owner, or as `postgres` or the account `nobody`. Throws if another user owns it.
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
  if (owner !== undefined) changeOwnerOfAll(cluster, account);
  return account;
}

function serviceAccount(): { uid: number; gid: number } {
  const entry = /^postgres:[^:]*:([1-9]\d*):(\d+):/m.exec(readFileSync('/etc/passwd', 'utf8'));
  return entry ? { uid: Number(entry[1]), gid: Number(entry[2]) } : { uid: nobody, gid: nobody };
}

function changeOwnerOfAll(root: string, { uid, gid }: { uid: number; gid: number }): void {
  for (const entry of readdirSync(root, { recursive: true, encoding: 'utf8' })) {
    lchownSync(join(root, entry), uid, gid);
  }
  lchownSync(root, uid, gid);
}

/** Throws when one of these paths exists and is not writable, as after a start by another user. */
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

/** Makes the account the owner of the file or folder at this path; does nothing for the current user. */
export function changeOwner(path: string, account: Account): void {
  if (account) lchownSync(path, account.uid, account.gid);
}

/**
 * Whether the account can open these paths (for a folder: list and enter it). It is tried as that account, because
 * modes alone say nothing of access lists, groups and parent folders.
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
 * The path of the cluster's folder for a program of the account that is started inside it. Below a folder that only
 * root may enter, the account cannot use the real path. But Node changes the working directory while it is still root,
 * and `/proc/self/cwd` leads there past the parent folders. All of PostgreSQL's processes stay in that directory, so
 * the path remains valid through crash recovery, parallel workers and reloads.
 */
export function pathFromInside(cluster: string, account: Account): string {
  if (canReach([cluster], account)) return cluster;
  if (existsSync('/proc/self/cwd')) return '/proc/self/cwd';
  throw new Error(`uid ${account?.uid} cannot reach ${cluster}`);
}
