/** Thrown for an invalid URL of a store; the message may name parameters, but never quotes a value. */
export class StoreUrlError extends Error {
  override readonly name = 'StoreUrlError';
}

/** Parsing that the URLs of all stores share. Each function throws `StoreUrlError`. */

/** The parameters of a query (`?name=value&…`), decoded; a later one wins. */
export function parametersOf(search: string): ReadonlyMap<string, string> {
  const pairs = search
    .slice(1)
    .split('&')
    .filter((pair) => pair !== '');
  return new Map(
    pairs.map((pair) => {
      const [name = '', ...value] = pair.split('=');
      return [decodePart(name), decodePart(value.join('='))];
    }),
  );
}

/** Undoes percent-encoding. */
export function decodePart(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new StoreUrlError('has a % that does not begin a percent-encoded character');
  }
}

/** Parses a port number from 1 to 65535. */
export function readPort(text: string): number {
  if (/^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new StoreUrlError('must have a port from 1 to 65535');
}

/** Throws for unsupported parameters, if there are any, with their names. */
export function refuseParameters(names: readonly string[]): void {
  if (names.length === 0) return;
  const shown = names.map((name) => (/^\w{1,40}$/.test(name) ? name : 'one with an odd name'));
  throw new StoreUrlError(`has parameters that are not supported: ${shown.join(', ')}`);
}
