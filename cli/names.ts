import { StartupError } from '../shared/runtime/program.js';

/** Those of the known names that an option gives. Throws `StartupError`, which begins with the rule, for others. */
export function readNames<T extends string>(given: string[], known: readonly T[], rule: string): T[] {
  const wanted = new Set<string>(given.map((name) => name.trim()));
  const found = known.filter((name) => wanted.has(name));
  if (found.length < wanted.size) throw new StartupError(`${rule}: ${known.join(', ')}.`);
  return found;
}
