import { afterEach, describe, expect, it, vi } from 'vitest';
import { type ChatReply, type Deployment, startDeployment } from '../support/deployment.js';
import { hearPools } from '../support/opened-store.js';
import { patience } from '../support/patience.js';

let deployment: Deployment;
const start = async (variables: Record<string, string>, workers = 1) => {
  deployment = await startDeployment({ workers, variables });
};

const wait = (seconds: number) => ({ Prefer: `wait=${seconds}` });
const callsOf = (model: string) => deployment.simulator.calls.list({ model });
const codeOf = ({ status, body }: ChatReply) => ({ status, code: body.code });

describe('rate limits', () => {
  afterEach(() => deployment.stop());

  it('hold back every worker of the provider', async () => {
    await start({}, 2);
    const heard = await hearPools(deployment.stores);
    const held = () =>
      heard.pools().filter(({ breakers }) => breakers?.some(({ state }) => state === 'limited')).length;
    const model = 'sim-limit-1-6-held';
    const reply = await deployment.chat({ model, headers: wait(5) });
    // There would be time for a retry, but not within the caller's.
    expect(codeOf(reply)).toEqual({ status: 500, code: 'provider_rate_limited' });
    await vi.waitFor(() => expect(held()).toBe(2), { ...patience, interval: 5 });
    const replies = await Promise.all(
      Array.from({ length: 6 }, () => deployment.chat({ model, headers: wait(30) })),
    );
    expect(replies.map(({ status }) => status)).toEqual(Array(6).fill(200));
    const [limitedAt = 0, ...later] = callsOf(model).map(({ facts }) => facts.receivedAt);
    for (const at of later) expect(at - limitedAt).toBeGreaterThanOrEqual(5900);
    await vi.waitFor(() => expect(held()).toBe(0), patience);
    await heard.close();
  });
});
