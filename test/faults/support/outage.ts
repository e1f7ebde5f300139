import { startRedisProcess } from '../../support/redis-process.js';
import { type StoreKind, type StoreServer, storeOf } from '../../support/stores.js';
import { openWireTo } from '../../support/wire.js';

/** A store of a catalogue's own that can be taken away, and given back. */
export interface OutageStore extends StoreServer {
  begin(): Promise<void>;
  end(): Promise<void>;
  stop(): Promise<void>;
}

/** A Redis of its own, which is killed with -9 and started again; PostgreSQL behind a wire, which is cut and mended. */
export async function startOutageStore(kind: StoreKind): Promise<OutageStore> {
  if (kind === 'redis') {
    const { kill, start, stop, port } = await startRedisProcess();
    const { databaseUrl } = storeOf('postgres');
    return { kind, url: `redis://127.0.0.1:${port}`, databaseUrl, begin: kill, end: start, stop };
  }
  const wire = await openWireTo(storeOf('postgres').url);
  return { kind, url: wire.url, databaseUrl: wire.url, begin: wire.cut, end: wire.mend, stop: wire.close };
}
