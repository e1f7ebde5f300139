/** Something that is counted until it is released. */
interface Counted {
  release(): void;
}

/**
 * Counts what several may want at once: `begin` is called for the first who wants the thing of this id, and what it gives is
 * released when the last of them has released what they were given.
 */
export type RefCounts<T extends Counted> = (id: string, begin: () => T) => T;

export function createRefCounts<T extends Counted>(): RefCounts<T> {
  const wanted = new Map<string, { by: number; thing: T }>();
  return (id, begin) => {
    const count = wanted.get(id) ?? { by: 0, thing: begin() };
    count.by += 1;
    wanted.set(id, count);
    const release = () => {
      count.by -= 1;
      if (count.by > 0) return;
      wanted.delete(id);
      count.thing.release();
    };
    return { ...count.thing, release };
  };
}
