import { hostname, userInfo } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { printAudit } from '../../../cli/commands/audit.js';
import {
  listPools,
  resetPool,
  type SetOptions,
  setIntake,
  setPool,
} from '../../../cli/commands/pool-settings.js';
import { parseConfig } from '../../../shared/config/config.js';
import { topics } from '../../../shared/protocol/messages.js';
import { openRelay } from '../../../shared/queue/relay.js';
import { openQueueStore } from '../../../shared/queue/stores/open.js';
import { heartbeatOf } from '../../support/heartbeats.js';
import { patience, patienceMs } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { freshStore, storeOf } from '../../support/stores.js';
import { openWireTo } from '../../support/wire.js';
import { printedBy } from '../output.js';

const environment: Record<string, string> = {
  ...(await freshStore(storeOf('postgres'), { migrated: true })),
  ...{ OPENAI_CONCURRENCY: '7', ANTHROPIC_FALLBACK: 'bedrock' },
};

const run = async (command: () => Promise<void>) => (await printedBy(command)).stdout;
const set = (options: SetOptions, provider = 'openai') =>
  run(() => setPool(environment, provider, { ...options, listenMs: 0 }));
/** The settings that a table has rows of. */
const settingsOf = (printed: string) => [...printed.matchAll(/^openai +(\S+)/gm)].map(([, name]) => name);
interface PoolView {
  provider: string;
  version: number;
  changedBy: string | null;
  settings: { name: string; value: unknown; source: string }[];
}
async function view(provider: string) {
  const pools: PoolView[] = JSON.parse(await run(() => listPools(environment, { json: true, listenMs: 0 })));
  const pool = pools.find((one) => one.provider === provider);
  const of = (name: string) => {
    const { value, source } = pool?.settings.find((one) => one.name === name) ?? {};
    return [value, source];
  };
  return { ...pool, of };
}

describe('quillgate pools', () => {
  it('the pools -> each value in force, and where it comes from', async () => {
    const openai = await view('openai');
    expect(openai).toMatchObject({ version: 0, changedBy: null });
    expect(openai.of('concurrency')).toEqual([7, 'environment']);
    expect(openai.of('timeoutMs')).toEqual([600_000, 'default']);
    expect(openai.of('rate')).toEqual([null, 'default']);
    expect((await view('anthropic')).of('fallback')).toEqual([[{ provider: 'bedrock' }], 'environment']);
  });

  it('the heartbeats of workers -> what concurrency they suggest', async () => {
    const log = createRecordingLog().log;
    const store = openQueueStore(parseConfig(environment, 'command'), log);
    await store.whenReady(AbortSignal.timeout(patienceMs));
    const relay = await openRelay(store, { name: 'worker', log });
    const service = { count: 600, overMs: 300_000, meanMs: 2000, p50Ms: 1500, p99Ms: 9000 };
    const heartbeat = heartbeatOf({ concurrency: 7, service, configured: { concurrency: 12 } });
    const message = { v: 1, worker: 'w', pools: [heartbeat] };
    const publishing = setInterval(() => void relay.broadcast(topics.processes, message), 20);
    try {
      const printed = await vi.waitUntil(async () => {
        const shown = await run(() => listPools(environment, { listenMs: 200 }));
        return shown.includes('at once suggested') && shown;
      }, patience);
      expect(printed).toContain(
        '\nopenai: 6 at once suggested, 6 for each worker: 2 jobs a second, of 2000 ms (p50 1500, p99 9000), by the 600 jobs of 300 s\n',
      );
      expect(printed).toMatch(/^openai +concurrency +12 +environment/m);
      expect(printed).not.toContain('\nanthropic:');
    } finally {
      clearInterval(publishing);
      await relay.close();
      await store.close();
    }
  });

  it('what is named -> is set, the rest left, and what is set to default taken back', async () => {
    await set({ concurrency: '40', rate: '60/1m', models: 'gpt-*,o1', fallback: 'anthropic/claude,bedrock' });
    const printed = await set({ concurrency: 'default', breaker: 'closed' });
    expect(printed).toMatch(/^PROVIDER +SETTING +VALUE +SOURCE +VERSION +CHANGED +BY\n/);
    expect(settingsOf(printed)).toEqual(['concurrency', 'breaker']);
    expect(printed).toMatch(
      new RegExp(`openai +breaker +"closed" +override +2 +\\S+Z +${userInfo().username}@${hostname()}`),
    );
    const openai = await view('openai');
    expect(openai.of('concurrency')).toEqual([7, 'environment']);
    expect(openai.of('rate')).toEqual([{ max: 60, durationMs: 60_000 }, 'override']);
    expect(openai.of('models')).toEqual([['gpt-*', 'o1'], 'override']);
    const fallback = [{ provider: 'anthropic', model: 'claude' }, { provider: 'bedrock' }];
    expect(openai.of('fallback')).toEqual([fallback, 'override']);
    const intake = (to: 'draining' | 'open') => () =>
      setIntake(environment, 'openai', { intake: to, listenMs: 0 });
    expect(await run(intake('draining'))).toMatch(/^openai +intake +"draining" +override +3 /m);
    expect(await run(intake('open'))).toMatch(/^openai +intake +- +default +4 /m);
    // The version is what the next change can be based on with --if-version.
    const reset = await run(() => resetPool(environment, 'openai', { listenMs: 0 }));
    expect(settingsOf(reset)).toEqual(['rate', 'breaker', 'models', 'fallback']);
    expect(reset).toMatch(/openai +rate +- +default +5 /);
    const audit = JSON.parse(await run(() => printAudit(environment, { limit: '1', json: true })));
    expect(audit).toMatchObject([
      { action: 'pools.set', targetName: 'openai', before: { breaker: 'closed' }, after: {} },
    ]);
    expect(await run(() => resetPool(environment, 'openai', { listenMs: 0 }))).toBe(
      'Nothing changed; version 6.\n',
    );
  });

  it('several people who name no version -> all their changes are made', async () => {
    const changes = ['timeoutMs', 'idleTimeoutMs', 'firstTokenTimeoutMs'].map((name) =>
      setPool(environment, 'vertexai', { [name]: '5000' }),
    );
    await run(async () => void (await Promise.all(changes)));
    const { version, of } = await view('vertexai');
    expect([version, of('timeoutMs')[0], of('idleTimeoutMs')[0], of('firstTokenTimeoutMs')[0]]).toEqual([
      3, 5000, 5000, 5000,
    ]);
  });

  it('what cannot be set -> refused, and nothing is changed', async () => {
    for (const [options, message] of [
      [{}, /Name a setting/],
      [{ concurrency: '0' }, /^--concurrency must be a whole number from 1 to 10000\.$/],
      [{ concurrency: 'many' }, /^--concurrency must be a whole number from 1 to 10000\.$/],
      [{ timeoutMs: '1' }, /^--timeout-ms must be a whole number from 100 to 3600000\.$/],
      [{ rate: '60' }, /--rate must be like 60\/1m/],
      [{ rate: '1/1ms' }, /^--rate: durationMs must be a whole number from 100 to /],
      [{ model: 'projects/evil/x' }, /^--model must be allowed by BEDROCK_MODELS/],
      [{ fallback: 'x' }, /^--fallback/],
      [{ concurrency: '1', ifVersion: 'x' }, /--if-version/],
    ] as const)
      await expect(set(options, 'bedrock'), JSON.stringify(options)).rejects.toThrow(message);
    expect(await view('bedrock')).toMatchObject({ version: 0 });
  });

  it('a store that answers nothing for three seconds -> the command waits for it', async () => {
    const { DATABASE_URL = '' } = environment;
    const wire = await openWireTo(DATABASE_URL);
    onTestFinished(() => wire.close());
    wire.freeze();
    const setting = run(() =>
      setPool({ ...environment, DATABASE_URL: wire.url }, 'openai', { concurrency: '3', listenMs: 0 }),
    );
    await Promise.all([setting, delay(3000).then(wire.thaw)]);
    expect((await view('openai')).of('concurrency')[0]).toBe(3);
  });

  it('a provider that there is not -> refused', async () => {
    await expect(set({ concurrency: '1' }, 'nobody')).rejects.toThrow('must be one of: openai');
  });
});
