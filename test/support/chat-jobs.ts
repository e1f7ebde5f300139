import type { ChatJob } from '../../shared/protocol/messages.js';
import type { Outcome } from '../../shared/protocol/outcome.js';
import { type CallChainDeps, callChain } from '../../workers/job/call-chain.js';
import { type ChatJobDeps, runChatJob } from '../../workers/job/chat-job.js';
import type { RunningJob } from '../../workers/job/running-job.js';
import type { LivePoolSettings } from '../../workers/pool/live-settings.js';
import type { Provider } from '../../workers/providers/provider.js';
import type { openGate } from './gate.js';
import { poolMetrics } from './metrics.js';
import { unavailableResults } from './stored-results.js';

/** The settings of a pool, with times that no test reaches by chance. */
export const poolSettings = (own: Partial<LivePoolSettings> = {}): LivePoolSettings => ({
  ...{ concurrency: 1, model: 'm', breakerResetMs: 60_000 },
  ...{ timeoutMs: 10_000, firstTokenTimeoutMs: 40_000, idleTimeoutMs: 20_000 },
  ...own,
});

/** A greeting on the queue of OpenAI. */
export const chatJobOf = (own: Partial<ChatJob> = {}): ChatJob => ({
  ...{ v: 1, provider: 'openai', replyTo: 'node', user: 'me' },
  turns: [{ role: 'user', content: 'Hello' }],
  deadline: Date.now() + 60_000,
  ...own,
});

interface RunOptions extends Partial<ChatJobDeps>, Pick<CallChainDeps, 'withImages' | 'fill'> {
  provider: Provider;
  open: ReturnType<typeof openGate>;
}

/** Runs a job through the whole call chain; gives its outcome. */
export async function runJob(running: RunningJob, job: ChatJob, options: RunOptions): Promise<Outcome> {
  const { provider, open, withImages, fill, ...deps } = options;
  const { outcome } = await runChatJob(running, job, {
    settings: poolSettings(),
    call: callChain({ provider, ...open, metrics: poolMetrics, withImages, fill }),
    readTexts: async () => ({ turns: [] }),
    storedResults: unavailableResults(),
    nextAttempts: { begin: async () => undefined },
    times: { meanMs: 0 },
    onFailure: () => {},
    ...deps,
  });
  return outcome;
}
