import type { PoolHeartbeat } from '../../shared/protocol/messages.js';

/** The heartbeat of an idle pool of OpenAI, with these changes. */
export const heartbeatOf = (changes: Partial<PoolHeartbeat> = {}): PoolHeartbeat => ({
  ...{ v: 1, provider: 'openai', worker: 'one', state: 'serving', concurrency: 10, inFlight: 0, waiting: 0 },
  ...{ meanJobMs: 0, simulated: false, configured: {} },
  ...{ settingsVersion: 0, release: '0.5.0', host: 'h' },
  ...changes,
});
