import { describe, expect, it } from 'vitest';
import { environmentSchema } from '../../../shared/config/config.js';
import { apiMetrics, type MetricDefinition, workerMetrics } from '../../../shared/metrics/metrics.js';

const metrics: MetricDefinition[] = [
  ...new Set([...Object.values(apiMetrics), ...Object.values(workerMetrics)]),
];

describe.each(metrics)('$name', ({ name, type, help, labels, buckets }) => {
  // https://prometheus.io/docs/practices/naming/
  it('is named as Prometheus has it', () => {
    expect(name).toMatch(/^quillgate(_[a-z]+)+$/);
    expect(name.endsWith('_total')).toBe(type === 'counter');
    if (type === 'histogram') expect(name).toMatch(/_seconds$/);
    expect(help).toMatch(/^[A-Z].*\.$/);
  });

  it('has labels from small closed sets', () => {
    for (const [label, values] of Object.entries(labels)) {
      expect(new Set(values).size).toBe(values.length);
      const form = label === 'release' ? /^\d+\.\d+\.\d+/ : /^[a-z][a-z_-]*$/;
      for (const value of values) expect(value).toMatch(form);
    }
    const series = Object.values(labels).reduce((product, values) => product * values.length, 1);
    expect(series).toBeLessThan(200);
  });

  if (type === 'histogram')
    it('has buckets up to the longest time that can be configured', () => {
      expect(buckets).toEqual([...(buckets ?? [])].sort((a, b) => a - b));
      const maxS = buckets?.at(-1) ?? 0;
      expect(environmentSchema.shape.CHAT_MAX_WAIT_S.safeParse(maxS + 1).success).toBe(false);
      for (const field of ['CHAT_TIMEOUT_MS', 'OPENAI_TIMEOUT_MS'] as const)
        expect(environmentSchema.shape[field].safeParse(maxS * 1000 + 1).success).toBe(false);
    });
});
