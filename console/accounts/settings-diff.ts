/** A setting that was changed; undefined where nothing was set. */
export interface SettingChange {
  readonly name: string;
  readonly before: string | undefined;
  readonly after: string | undefined;
}

/** What differs between all settings that were set and all that were set then, by name. */
export function diffSettings(before: unknown, after: unknown): SettingChange[] {
  const [old, now] = [fieldsOf(before), fieldsOf(after)];
  const names = [...new Set([...Object.keys(old), ...Object.keys(now)])].sort();
  return names
    .map((name) => ({ name, before: textOf(old[name]), after: textOf(now[name]) }))
    .filter((change) => change.before !== change.after);
}

const fieldsOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};

/** Members in their order do not matter. */
function textOf(value: unknown): string | undefined {
  if (value === undefined || typeof value === 'string') return value;
  return JSON.stringify(value, (_name, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}
