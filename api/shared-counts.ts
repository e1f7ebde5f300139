/**
 * Counts what several may want at once: `begin` is called for the first who wants the thing of this id, and what it gives
 * when the last of them has let go, by calling what they were given.
 */
export type SharedCounts = (id: string, begin: () => () => void) => () => void;

export function createSharedCounts(): SharedCounts {
  const wanted = new Map<string, { by: number; end: () => void }>();
  return (id, begin) => {
    const count = wanted.get(id) ?? { by: 0, end: begin() };
    count.by += 1;
    wanted.set(id, count);
    return () => {
      count.by -= 1;
      if (count.by > 0) return;
      wanted.delete(id);
      count.end();
    };
  };
}
