import { describe, expect, it } from 'vitest';
import { observeIntake } from '../../../api/operations/intake-gauges.js';
import { Heartbeats } from '../../../shared/fleet/heartbeats.js';
import { LivePools } from '../../../shared/fleet/live-pools.js';
import { openInstruments } from '../../../shared/metrics/instruments.js';
import { apiMetrics } from '../../../shared/metrics/metrics.js';
import { readMetrics } from '../../support/metrics.js';

describe('observeIntake', () => {
  it('shows what operators have set, once that is known', async () => {
    const instruments = openInstruments(apiMetrics);
    const pools = new LivePools(new Heartbeats({ since: 0 }));
    let isConnected = false;
    observeIntake(instruments, () => (isConnected ? { pools } : undefined));
    const read = async () =>
      [...readMetrics((await instruments.scrape()).text)].flatMap(([series, value]) =>
        series.startsWith('quillgate_intake') && value === 1 ? [series.replace('quillgate_intake', '')] : [],
      );
    expect(await read()).toEqual([]);
    isConnected = true;
    const record = { v: 1, version: 1, changedAt: '', changedBy: 'x' } as const;
    pools.settings.apply({ ...record, provider: 'bedrock', overrides: { intake: 'paused' } });
    pools.settings.apply({ ...record, provider: 'vertexai', overrides: { intake: 'draining' } });
    expect(await read()).toEqual([
      '{provider="openai",state="open"}',
      '{provider="anthropic",state="open"}',
      '{provider="bedrock",state="paused"}',
      '{provider="vertexai",state="draining"}',
    ]);
    pools.settings.apply({ ...record, version: 2, provider: 'bedrock', overrides: {} });
    expect(await read()).toContain('{provider="bedrock",state="open"}');
  });
});
