import type { LoadOrder } from './load.js';

/** Connections that begin together, and where they lead. */
export interface LoadGroup {
  readonly afterMs: number;
  /** Place of its first connection among all. */
  readonly first: number;
  readonly connections: number;
  readonly origin: string;
}

const mostGroups = 100;

/**
 * The connections of an order: all at once unless they are to be spread over a time, and to its origins in turns. Callers that
 * begin together would come back together, since each waits for the same provider.
 */
export function groupsOf({
  connections,
  traffic,
  origins = [traffic.origin],
  spreadSeconds = 0,
}: Pick<LoadOrder, 'connections' | 'traffic' | 'origins' | 'spreadSeconds'>): LoadGroup[] {
  const count = Math.min(
    connections,
    spreadSeconds > 0 ? Math.max(mostGroups, origins.length) : origins.length,
  );
  const startOf = (place: number) => Math.floor((place * connections) / count);
  return Array.from({ length: count }, (_, place) => ({
    afterMs: (place * spreadSeconds * 1000) / count,
    first: startOf(place),
    connections: startOf(place + 1) - startOf(place),
    origin: origins[place % origins.length] ?? traffic.origin,
  }));
}
