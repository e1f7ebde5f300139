/** One server-sent event with JSON data, and a name where the provider gives its events names. */
export function serverSentEvent(data: object, name?: string): string {
  const prefix = name === undefined ? '' : `event: ${name}\n`;
  return `${prefix}data: ${JSON.stringify(data)}\n\n`;
}
