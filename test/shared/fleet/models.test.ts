import { beforeEach, describe, expect, it } from 'vitest';
import { listModels } from '../../../shared/fleet/fleet.js';
import { Heartbeats } from '../../../shared/fleet/heartbeats.js';
import type { PoolHeartbeat } from '../../../shared/protocol/messages.js';
import { heartbeatOf } from '../../support/heartbeats.js';

let nowMs: number;
let heartbeats: Heartbeats;
beforeEach(() => {
  nowMs = 0;
  heartbeats = new Heartbeats({ now: () => nowMs, time: () => nowMs });
});

const heartbeat = (changes: Partial<PoolHeartbeat> = {}) =>
  heartbeats.add(heartbeatOf({ defaultModel: 'gpt', ...changes }));
const listed = () => listModels(heartbeats).map(({ provider, model }) => `${provider}/${model}`);

describe('listModels', () => {
  it('has the default model and the named ones, by provider, and no patterns', () => {
    heartbeat({
      provider: 'vertexai',
      defaultModel: 'gemini',
      models: ['gemini-*', 'publishers/x/models/y'],
    });
    heartbeat({ models: ['gpt', '*', 'gpt-mini'] });
    heartbeat({ worker: 'two', models: ['gpt-nano'] });
    heartbeats.add(heartbeatOf({ provider: 'bedrock' }));
    expect(listed()).toEqual([
      'openai/gpt',
      'openai/gpt-mini',
      'openai/gpt-nano',
      'vertexai/gemini',
      'vertexai/publishers/x/models/y',
    ]);
  });

  it('forgets at once what a worker no longer says, and soon what only one said that is gone', () => {
    heartbeat({ models: ['old'] });
    heartbeat({ models: ['new'] });
    heartbeat({ worker: 'two', models: ['other'] });
    expect(listed()).toEqual(['openai/gpt', 'openai/new', 'openai/other']);
    nowMs = 4000;
    heartbeat({ models: ['new'] });
    expect(listed()).toEqual(['openai/gpt', 'openai/new']);
  });

  it('keeps the last known ones for ten minutes without a worker, however that went', () => {
    heartbeat({ models: ['a'] });
    heartbeat({ worker: 'two', models: ['b'] });
    heartbeat({ worker: 'two', state: 'stopped' });
    nowMs = 600_000;
    expect(listed()).toEqual(['openai/gpt', 'openai/a', 'openai/b']);
    nowMs = 600_001;
    expect(listed()).toEqual([]);
  });

  it('says since when it has known a model, which it notes when it hears of it', () => {
    nowMs = 1000;
    heartbeat();
    nowMs = 5000;
    heartbeat({ models: ['new'] });
    expect(listModels(heartbeats).map(({ since }) => since)).toEqual([1000, 5000]);
  });
});
