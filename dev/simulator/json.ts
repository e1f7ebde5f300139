/** Whether a text is empty or only white space. */
export function isBlank(text: string): boolean {
  return text.trim() === '';
}

/** The first index whose role equals the one before it, or -1: where a run of one role starts to repeat. */
export function repeatedRoleAt(messages: readonly { role: string }[]): number {
  return messages.findIndex((message, index) => message.role === messages[index - 1]?.role);
}

/** The type of a value in words, as API error messages name it. */
export function typeName(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'an integer' : 'a decimal';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** One server-sent event with JSON data, and a name where the provider gives its events names. */
export function serverSentEvent(data: object, name?: string): string {
  const prefix = name === undefined ? '' : `event: ${name}\n`;
  return `${prefix}data: ${JSON.stringify(data)}\n\n`;
}
