import { describe, expect, it, vi } from 'vitest';
import { parseConfig } from '../../../shared/config/config.js';
import { poolConfig } from '../../../shared/config/pool-config.js';
import { encodeSettings, type ProviderSettings } from '../../../shared/protocol/settings.js';
import { toModelRequest } from '../../../workers/job/model-request.js';
import { LiveSettings } from '../../../workers/pool/live-settings.js';
import { SettingsFollower } from '../../../workers/pool/settings-follower.js';
import { createRecordingLog } from '../../support/recording-log.js';

const environment = poolConfig(
  parseConfig({ OPENAI_CONCURRENCY: '7', OPENAI_MODEL: 'm' }, 'config'),
  'openai',
);
const record = (version: number, overrides: ProviderSettings['overrides']): ProviderSettings => ({
  ...{ v: 1, provider: 'openai', version, overrides },
  ...{ changedAt: '2026-11-22T10:00:00.000Z', changedBy: 'ann' },
});

describe('LiveSettings', () => {
  it('has operators replace what the environment says, and take it back', () => {
    const settings = new LiveSettings(environment);
    expect([settings.version, settings.current]).toEqual([0, environment]);
    settings.apply(record(1, { concurrency: 40, intake: 'paused', fallback: [] }));
    expect(settings.current).toEqual({ ...environment, concurrency: 40, intake: 'paused' });
    settings.apply(record(2, { model: 'n' }));
    expect(settings.current).toMatchObject({ ...environment, model: 'n' });
    settings.apply(record(3, {}));
    expect([settings.version, settings.current]).toEqual([3, environment]);
  });

  it('ignores models that the environment does not allow', () => {
    const settings = new LiveSettings(environment);
    settings.apply(record(1, { model: 'projects/evil/x', models: ['n', 'projects/*', '*'] }));
    expect(settings.current).toMatchObject({ model: 'm', models: ['n', '*'] });
    const request = (model: string) =>
      toModelRequest({ provider: 'openai', model, turns: [] }, settings.current);
    expect(request('gpt-5').model).toBe('gpt-5');
    expect(() => request('projects/evil/x')).toThrow('invalid_request');
  });

  it('applies no version twice, and none that is older', () => {
    const settings = new LiveSettings(environment);
    let changes = 0;
    settings.onChange(() => {
      changes += 1;
    });
    settings.apply(record(5, { concurrency: 5 }));
    settings.apply(record(5, { concurrency: 6 }));
    settings.apply(record(4, { concurrency: 4 }));
    expect([settings.version, settings.current.concurrency, changes]).toEqual([5, 5, 1]);
  });
});

describe('SettingsFollower', () => {
  type Deps = ConstructorParameters<typeof SettingsFollower>[0];
  const follow = (settings: LiveSettings, own: Pick<Deps, 'records'> & Partial<Deps>) =>
    new SettingsFollower({
      settings: new Map([['openai', settings]]),
      ...{
        relay: { subscribe: async () => {} },
        jobs: { cancelUsers: () => {} },
        log: createRecordingLog().log,
      },
      ...own,
    });

  it('goes by the record when it starts, then by newer messages', async () => {
    const settings = new LiveSettings(environment);
    const listeners: ((message: never) => void)[] = [];
    let recorded = encodeSettings(record(2, { concurrency: 2 }));
    const follower = follow(settings, {
      records: {
        readAll: async (keys) => keys.map((key) => (key === 'settings.openai' ? recorded : undefined)),
      },
      relay: { subscribe: async (_topic, _schema, listener) => void listeners.push(listener) },
    });
    await follower.start();
    expect(settings.current.concurrency).toBe(2);
    const publish = (message: ProviderSettings) => {
      for (const listener of listeners) listener(message as never);
    };
    publish(record(4, { concurrency: 4 }));
    publish(record(3, { concurrency: 3 }));
    expect(settings.current.concurrency).toBe(4);
    await follower.read();
    expect(settings.version).toBe(4);
    recorded = encodeSettings(record(6, { concurrency: 6 }));
    await follower.read();
    expect(settings.current.concurrency).toBe(6);
    follower.stop();
  });

  it('reads the records every second: a message may be lost', async () => {
    vi.useFakeTimers();
    const settings = new LiveSettings(environment);
    const recorded = new Map([['users.removed', '{"v":1,"users":["gone"]}']]);
    const removed: string[] = [];
    const follower = follow(settings, {
      records: { readAll: async (keys) => keys.map((key) => recorded.get(key)) },
      jobs: { cancelUsers: (ids) => void removed.push(...ids) },
    });
    await follower.start();
    expect(removed.splice(0)).toEqual(['gone']);
    recorded.set('settings.openai', encodeSettings(record(1, { intake: 'paused' })));
    await vi.advanceTimersByTimeAsync(1000);
    expect([settings.current.intake, removed]).toEqual(['paused', ['gone']]);
    follower.stop();
    vi.useRealTimers();
  });
});
