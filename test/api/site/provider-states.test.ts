import { describe, expect, it } from 'vitest';
import { createProviderStates } from '../../../api/site/provider-states.js';
import type { ProviderId } from '../../../shared/contracts/contract.js';
import { Heartbeats } from '../../../shared/fleet/heartbeats.js';
import type { PoolHeartbeat } from '../../../shared/protocol/messages.js';
import { heartbeatOf } from '../../support/heartbeats.js';

const worker = (simulated = false) => heartbeatOf({ state: 'paused', simulated });

/** The states while the workers of these providers have been heard of; undefined: none could have been yet. */
const statesOf = (
  heard: Partial<Record<ProviderId, PoolHeartbeat[] | undefined>>,
  checkStore: () => Promise<unknown> = async () => undefined,
) =>
  createProviderStates({
    heartbeats: { of: (id) => heard[id] },
    checkStore,
    storeTimeoutMs: 50,
  })();

describe('createProviderStates', () => {
  it('tells real, simulated and missing workers apart', async () => {
    const heard = { openai: [worker()], anthropic: [worker(true)], bedrock: [], vertexai: undefined };
    expect(await statesOf(heard)).toEqual({
      openai: 'real',
      anthropic: 'simulated',
      bedrock: 'no_worker',
      vertexai: 'unknown',
    });
  });

  it('knows nothing before the queue is connected', async () => {
    const heartbeats = new Heartbeats({ since: Infinity });
    const look = createProviderStates({ heartbeats, checkStore: async () => undefined });
    expect(new Set(Object.values(await look()))).toEqual(new Set(['unknown']));
  });

  it.each([
    ['is down', () => Promise.reject(new Error('down'))],
    ['never answers', () => new Promise(() => undefined)],
  ])('says that it cannot see the missing ones when the store %s', async (_, checkStore) => {
    expect(await statesOf({ openai: [worker()], anthropic: [] }, checkStore)).toMatchObject({
      openai: 'real',
      anthropic: 'unknown',
    });
  });

  it('does not ask the store when every provider has a worker', async () => {
    const all = { openai: [worker()], anthropic: [worker()], bedrock: [worker()], vertexai: [worker()] };
    const checkStore = () => Promise.reject(new Error('asked'));
    expect(Object.values(await statesOf(all, checkStore))).toEqual(Array(4).fill('real'));
  });
});
