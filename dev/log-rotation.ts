import { copyFileSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs';

/** Maximum size of each log of `npm start`, and of each of two older files. */
const maxBytes = 10_000_000;
const everyMs = 5000;

/**
 * Rotates logs periodically. They are copied and then truncated, because the programs keep them open to append: a line
 * written in between is lost.
 */
export function rotateLogs(files: readonly string[]): { stop(): void } {
  const timer = setInterval(() => {
    for (const file of files) rotateLog(file, maxBytes);
  }, everyMs);
  timer.unref();
  return { stop: () => clearInterval(timer) };
}

/** Moves the content of a log to `<file>.1`, and that to `<file>.2`, when it is larger than this. */
export function rotateLog(file: string, limitBytes: number): void {
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (size <= limitBytes) return;
  try {
    rmSync(`${file}.2`, { force: true });
    if (statSync(`${file}.1`, { throwIfNoEntry: false })) renameSync(`${file}.1`, `${file}.2`);
    copyFileSync(file, `${file}.1`);
  } catch {
    // A full disk has no room for the copy; truncating the log makes room.
  }
  truncateSync(file);
}
