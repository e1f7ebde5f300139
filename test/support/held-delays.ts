/**
 * The delays of a `LoginLimiter` whose time the test lets pass: each attempt waits until `passAll`, and how long it
 * would have waited is noted, in milliseconds.
 */
export function heldDelays() {
  const waitsMs: number[] = [];
  const waiting = new Set<() => void>();
  return {
    waitsMs,
    get waiting(): number {
      return waiting.size;
    },
    passAll: (): void => {
      for (const pass of waiting) pass();
      waiting.clear();
    },
    delay: (ms: number, signal: AbortSignal): Promise<void> => {
      waitsMs.push(ms);
      return new Promise((resolve, reject) => {
        waiting.add(resolve);
        signal.addEventListener('abort', () => {
          waiting.delete(resolve);
          reject(signal.reason);
        });
      });
    },
  };
}
