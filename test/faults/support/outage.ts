import { startRedisProcess } from '../../support/redis-process.js';
import { type StoreKind, type StoreServer, storeOf } from '../../support/stores.js';
import { openWireTo } from '../../support/wire.js';

/** A store of a catalogue's own that can be taken away, and given back. */
export interface OutageStore extends StoreServer {
  begin(): Promise<void>;
  end(): Promise<void>;
  /** Stops it from answering, while its connections stay open. */
  freeze(): void;
  thaw(): void;
  stop(): Promise<void>;
}

/** A Redis of its own, which is killed with -9 and started again; PostgreSQL behind a wire, which is cut and mended. */
export async function startOutageStore(kind: StoreKind): Promise<OutageStore> {
  if (kind === 'redis') {
    const { kill, start, port, ...redis } = await startRedisProcess();
    const { databaseUrl } = storeOf('postgres');
    return { ...redis, kind, url: `redis://127.0.0.1:${port}`, databaseUrl, begin: kill, end: start };
  }
  const wire = await openWireTo(storeOf('postgres').url);
  return { ...wire, kind, databaseUrl: wire.url, begin: wire.cut, end: wire.mend, stop: wire.close };
}
