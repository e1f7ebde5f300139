import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addUser } from '../support/accounts.js';
import { type ChatCall, type ChatReply, type Deployment, startDeployment } from '../support/deployment.js';

const maxInFlight = 2;
const maxPerMinute = 12;

let deployment: Deployment;
beforeAll(async () => {
  deployment = await startDeployment({
    variables: {
      CHAT_USER_MAX_IN_FLIGHT: String(maxInFlight),
      CHAT_USER_MAX_PER_MINUTE: String(maxPerMinute),
    },
  });
});
afterAll(() => deployment.stop());

type Ask = (call?: ChatCall) => Promise<ChatReply>;

/** Makes a user and gives how this user asks. */
async function newUser(name: string): Promise<Ask> {
  const Authorization = await addUser(deployment, name);
  return (call = {}) => deployment.chat({ ...call, headers: { ...call.headers, Authorization } });
}

const called = (model: string) => deployment.simulator.waitForCall((call) => call.model === model);
const statuses = (replies: ChatReply[]) => replies.map(({ status }) => status);

/** The user asks as much at once as is allowed, and the provider is at work on all of it. */
async function occupy(ask: Ask, model: string, signal?: AbortSignal): Promise<Promise<ChatReply>[]> {
  const models = Array.from({ length: maxInFlight }, (_, index) => `${model}@${index}`);
  const asked = models.map((one) => ask({ model: one, ...(signal && { signal }) }));
  for (const promise of asked) promise.catch(() => undefined);
  await Promise.all(models.map(called));
  return asked;
}

describe('a user with as many requests in flight as allowed', () => {
  it('is refused one more at once, and nobody else is', async () => {
    const [one, other] = [await newUser('one'), await newUser('other')];
    const asked = await occupy(one, 'sim-latency-1500');
    const refused = await one();
    expect({ status: refused.status, code: refused.body.code }).toEqual({
      status: 429,
      code: 'rate_limited',
    });
    expect(refused.headers.get('retry-after')).toBe('1');
    expect((await other()).status).toBe(200);
    expect((await deployment.chat({})).status).toBe(200);
    expect(statuses(await Promise.all(asked))).toEqual([200, 200]);
    expect((await one()).status).toBe(200);
  });
});

describe('a user who has asked as often in a minute as allowed', () => {
  it('is told when the next minute begins, and nobody else is refused', async () => {
    const [one, other] = [await newUser('frequent'), await newUser('rare')];
    for (let count = 0; count < maxPerMinute; count += 1) expect((await one()).status).toBe(200);
    const refused = await one();
    expect(refused.status).toBe(429);
    const retryAfterS = Number(refused.headers.get('retry-after'));
    expect(retryAfterS).toBeGreaterThan(30);
    expect(retryAfterS).toBeLessThanOrEqual(60);
    expect((await other()).status).toBe(200);
  });

  it('is not charged for requests that are no chats', async () => {
    const ask = await newUser('clumsy');
    const bad = Array.from({ length: 2 * maxPerMinute }, () => ask({ messages: [] }));
    expect(new Set(statuses(await Promise.all(bad)))).toEqual(new Set([400]));
    expect((await ask()).status).toBe(200);
  });
});
