import { type ProviderId, providerIds } from '../../shared/contracts/contract.js';

/** A variable of every provider's pool, such as its `CONCURRENCY`. */
export const ofEveryPool = (name: string, value: number): Record<string, string> =>
  Object.fromEntries(providerIds.map((id: ProviderId) => [`${id.toUpperCase()}_${name}`, String(value)]));

const never = 120_000;

/**
 * Times that no slow machine reaches, and room for every call, so that nothing ends, waits or is refused unless a test
 * makes it. Limits by address count the `X-Forwarded-For` that a test sends.
 */
const plain: Record<string, string> = {
  CHAT_TIMEOUT_MS: String(never),
  CHAT_COMPATIBLE_TIMEOUT_MS: String(never),
  WORKER_LOCK_MS: '60000',
  TRUSTED_PROXIES: 'loopback',
  ...ofEveryPool('TIMEOUT_MS', never),
  ...ofEveryPool('FIRST_TOKEN_TIMEOUT_MS', never),
  ...ofEveryPool('IDLE_TIMEOUT_MS', never),
  ...ofEveryPool('CONCURRENCY', 500),
};

/** The variables of a deployment by what its tests are about; a test file adds its own to one of these. */
export const profiles = {
  plain,
  /** One call of OpenAI at a time, so that the order of calls is the order of jobs. */
  narrow: { ...plain, OPENAI_CONCURRENCY: '1' },
  /** For what is about locks: another worker takes over the job of a dead one within seconds. */
  short: { ...plain, CHAT_TIMEOUT_MS: '30000', WORKER_LOCK_MS: '3000', WORKER_STALLED_CHECK_MS: '1000' },
};
