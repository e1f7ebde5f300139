import { resolve } from 'node:path';

const pairs = [
  ['setTimeout', 'clearTimeout'],
  ['setInterval', 'clearInterval'],
] as const;

/**
 * Counts the timers that code below this folder of the source has set and that are still to come. Called once timers
 * are faked, in place of `vi.getTimerCount`: other files of the process may set theirs meanwhile, for connections that
 * they have left idle.
 */
export function countOwnTimers(folder: string): () => number {
  const own = new Set<unknown>();
  const source = `${resolve(folder)}/`;
  const globals = globalThis as unknown as Record<string, (...args: unknown[]) => unknown>;
  for (const [set, clear] of pairs) {
    const { [set]: setFake, [clear]: clearFake } = globals;
    // Real ones stay as they are.
    if (!setFake || !clearFake || !('clock' in setFake)) continue;
    const isOwn = () => new Error('set here').stack?.includes(source);
    globals[set] = (run, ...args) => {
      const call = (...given: unknown[]) => {
        if (set === 'setTimeout') own.delete(timer);
        (run as (...all: unknown[]) => void)(...given);
      };
      const timer = setFake(call, ...args);
      if (isOwn()) own.add(timer);
      return timer;
    };
    globals[clear] = (timer) => {
      own.delete(timer);
      clearFake(timer);
    };
  }
  return () => own.size;
}
