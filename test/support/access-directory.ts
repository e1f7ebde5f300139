import { AccessDirectory } from '../../api/access/access-directory.js';
import { MemorySessions } from './memory-sessions.js';
import { createRecordingLog } from './recording-log.js';

type Deps = ConstructorParameters<typeof AccessDirectory>[0];

/** A directory over stores without users, tokens and sessions, unless others are given. It loads nothing. */
export const directoryOf = (deps: Partial<Deps>): AccessDirectory =>
  new AccessDirectory({
    environment: {},
    users: { digests: async () => [], removedWithin: async () => [] },
    tokens: { listActive: async () => [], find: async () => undefined, markUsed: async () => {} },
    sessions: new MemorySessions(),
    log: createRecordingLog().log,
    ...deps,
  });
