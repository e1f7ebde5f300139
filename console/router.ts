import { signal } from '@preact/signals';

/** Where the page is: `#/pools/openai?x=1` is the view `pools`, its arguments `['openai']`, and its query. */
export interface Place {
  readonly view: string;
  readonly args: readonly string[];
  readonly query: URLSearchParams;
}

/** The props of each view: the rest of the address after its name. */
export type ViewProps = Omit<Place, 'view'>;

/** Reads a fragment; what cannot be decoded stays as it is. */
export function parsePlace(hash: string): Place {
  const [path = '', query = ''] = hash.replace(/^#?\/?/, '').split('?', 2);
  const [view = '', ...args] = path.split('/').map(decode);
  return { view, args: args.filter((arg) => arg !== ''), query: new URLSearchParams(query) };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Where the page is now. */
export const place = signal<Place>(parsePlace(''));

/** To be called once, when the page begins. */
export function followHash(): void {
  const look = () => {
    place.value = parsePlace(location.hash);
  };
  look();
  addEventListener('hashchange', look);
}
