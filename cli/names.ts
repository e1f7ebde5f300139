import { StartupError } from '../shared/runtime/program.js';

/** Reads the names that an option gives. Throws `StartupError`, which begins with the rule, for an unknown one. */
export function readNames<T extends string>(given: string[], known: readonly T[], rule: string): T[] {
  const wanted = new Set<string>(given.map((name) => name.trim()));
  const found = known.filter((name) => wanted.has(name));
  if (found.length < wanted.size) throw new StartupError(`${rule}: ${known.join(', ')}.`);
  return found;
}
