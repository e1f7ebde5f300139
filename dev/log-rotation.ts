import { copyFileSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs';

/** What `npm start` keeps of each log: this many bytes, and as many in each of two older files. */
const maxBytes = 10_000_000;
const everyMs = 5000;

/**
 * Keeps logs from growing without end while it runs. They are copied and then emptied, because the programs hold them open
 * to append: a line written between the two is lost.
 */
export function rotateLogs(files: readonly string[]): { stop(): void } {
  const timer = setInterval(() => {
    for (const file of files) rotateLog(file, maxBytes);
  }, everyMs);
  timer.unref();
  return { stop: () => clearInterval(timer) };
}

/** Moves what a log holds into `<file>.1`, and that into `<file>.2`, when it has grown beyond this size. */
export function rotateLog(file: string, limitBytes: number): void {
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (size <= limitBytes) return;
  try {
    rmSync(`${file}.2`, { force: true });
    if (statSync(`${file}.1`, { throwIfNoEntry: false })) renameSync(`${file}.1`, `${file}.2`);
    copyFileSync(file, `${file}.1`);
  } catch {
    // On a full disk there is no room for the copy; emptying the log is what makes room.
  }
  truncateSync(file);
}
