import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { parseConfig } from '../../../shared/config/config.js';
import { poolConfig } from '../../../shared/config/pool-config.js';
import { encodeSettings, type ProviderSettings } from '../../../shared/protocol/settings.js';
import { toModelRequest } from '../../../workers/job/model-request.js';
import { LiveSettings, SettingsFollower } from '../../../workers/pool/live-settings.js';
import { createRecordingLog } from '../../support/recording-log.js';

const environment = poolConfig(
  parseConfig({ OPENAI_CONCURRENCY: '7', OPENAI_MODEL: 'm' }, 'config'),
  'openai',
);
const record = (version: number, overrides: ProviderSettings['overrides']): ProviderSettings => ({
  ...{ v: 1, provider: 'openai', version, overrides },
  ...{ changedAt: '2026-11-22T10:00:00.000Z', changedBy: 'ann' },
});

let settings: LiveSettings;
beforeEach(() => {
  settings = new LiveSettings(environment);
});

describe('LiveSettings', () => {
  it('operators replace what the environment says -> it holds, until they take it back', () => {
    expect([settings.version, settings.current]).toEqual([0, environment]);
    settings.apply(record(1, { concurrency: 40, intake: 'paused', fallback: [] }));
    expect(settings.current).toEqual({ ...environment, concurrency: 40, intake: 'paused' });
    settings.apply(record(2, { model: 'n' }));
    expect(settings.current).toMatchObject({ ...environment, model: 'n' });
    settings.apply(record(3, {}));
    expect([settings.version, settings.current]).toEqual([3, environment]);
  });

  it('models that the environment does not allow -> ignored', () => {
    settings.apply(record(1, { model: 'projects/evil/x', models: ['n', 'projects/*', '*'] }));
    expect(settings.current).toMatchObject({ model: 'm', models: ['n', '*'] });
    const request = (model: string) =>
      toModelRequest({ provider: 'openai', user: 'M', model, turns: [] }, settings.current);
    expect(request('gpt-5').model).toBe('gpt-5');
    expect(() => request('projects/evil/x')).toThrow('invalid_request');
  });

  it('the same version again, or an older one -> not applied', () => {
    const onChange = vi.fn();
    settings.onChange(onChange);
    for (const [version, concurrency] of [[5, 5] as const, [5, 6] as const, [4, 4] as const])
      settings.apply(record(version, { concurrency }));
    expect([settings.version, settings.current.concurrency, onChange.mock.calls.length]).toEqual([5, 5, 1]);
  });
});

it('a follower -> goes by the records when it starts and every second, and by newer messages', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const listeners: ((message: never) => void)[] = [];
  const recorded = new Map([['users.removed', '{"v":1,"users":["gone"]}']]);
  const removed: string[] = [];
  const follower = new SettingsFollower({
    settings: new Map([['openai', settings]]),
    records: { readAll: async (keys) => keys.map((key) => recorded.get(key)) },
    relay: { subscribe: async (_topic, _schema, listener) => void listeners.push(listener) },
    jobs: { cancelUsers: (ids) => void removed.push(...ids) },
    log: createRecordingLog().log,
  });
  const set = (version: number) => recorded.set('settings.openai', encodeSettings(record(version, {})));
  set(2);
  await follower.start();
  expect([settings.version, removed.splice(0)]).toEqual([2, ['gone']]);
  for (const version of [4, 3]) for (const listener of listeners) listener(record(version, {}) as never);
  expect(settings.version).toBe(4);
  await follower.read();
  expect(settings.version).toBe(4);
  // A message may be lost.
  set(6);
  removed.length = 0;
  await vi.advanceTimersByTimeAsync(1000);
  expect([settings.version, removed]).toEqual([6, ['gone']]);
  follower.stop();
});
