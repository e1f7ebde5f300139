import { StoredResults } from '../../workers/job/stored-results.js';
import { createRecordingLog } from './recording-log.js';

const unavailable = () => Promise.reject(new Error('the store is down'));
const records = { read: unavailable, create: unavailable };

/** Of an unavailable store: the outcomes of ordinary jobs do not need it. */
export const unavailableResults = (log = createRecordingLog().log): StoredResults =>
  new StoredResults({ records, log, now: Date.now, timeoutMs: 0 });
