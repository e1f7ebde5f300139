/** The value, with a count of how often any part of it was read: each look at a property, or at the list of them. */
export function countVisits<Value>(value: Value): { value: Value; visits: () => number } {
  let count = 0;
  const seen = new WeakMap<object, object>();
  const watched = (part: unknown): unknown => {
    if (typeof part !== 'object' || part === null) return part;
    const known = seen.get(part);
    if (known) return known;
    const proxy = new Proxy(part, {
      get: (target, name, receiver) => {
        count += 1;
        return watched(Reflect.get(target, name, receiver));
      },
      ownKeys: (target) => {
        count += 1;
        return Reflect.ownKeys(target);
      },
    });
    seen.set(part, proxy);
    return proxy;
  };
  return { value: watched(value) as Value, visits: () => count };
}

/** How many times as many visits it takes to work on a value that is sixteen times as long: 16 is linear. */
export function growthOfVisits<Value>(
  make: (size: number) => Value,
  work: (value: Value) => unknown,
): number {
  const visitsOf = (size: number) => {
    const { value, visits } = countVisits(make(size));
    work(value);
    return visits();
  };
  return visitsOf(4000) / visitsOf(250);
}
