import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { unknownIn, unknownMetrics } from './queries.js';

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook: string };
}

const text = readFileSync('deploy/prometheus/rules.yaml', 'utf8');
const { groups } = parse(text) as { groups: { rules: Rule[] }[] };
const rules = groups.flatMap((group) => group.rules);

describe('deploy/prometheus/rules.yaml', () => {
  it.each(rules)('$alert -> asks for what there is, and says what to do', (rule) => {
    const { annotations, labels, expr } = rule;
    expect(unknownIn(expr)).toEqual([]);
    expect(rule.for).toMatch(/^\d+m$/);
    expect(['page', 'ticket']).toContain(labels.severity);
    expect(annotations.runbook.length).toBeGreaterThan(50);
    for (const [, label] of annotations.summary.matchAll(/\$labels\.(\w+)/g))
      expect(expr).toMatch(new RegExp(`by \\((\\w+, )*${label}[,)]`));
  });

  it('-> names only metrics that there are', () => {
    expect(unknownMetrics(text)).toEqual([]);
  });

  it('-> has a test of every alert for promtool', () => {
    const tests = readFileSync('test/release/deploy/alerts.yaml', 'utf8');
    expect(rules.filter(({ alert }) => !tests.includes(`"${alert}"`))).toEqual([]);
  });
});

describe('docs/operations.md', () => {
  const alarms =
    readFileSync('docs/operations.md', 'utf8').split('\n## Alarms\n')[1]?.split('\n## ')[0] ?? '';
  const queries = [...alarms.matchAll(/`([^`]*quillgate_[^`]*)`/g)].map(([, query = '']) => query);

  it('-> has queries', () => expect(queries.length).toBeGreaterThan(1));
  it.each(queries)('%s -> asks for what there is', (query) => expect(unknownIn(query)).toEqual([]));
});

describe("the pools' queries in deploy/kubernetes", () => {
  it.each(globSync('deploy/kubernetes/workers/*/load.yaml'))('%s -> ask for what there is', (file) => {
    const patch = parse(readFileSync(file, 'utf8')) as { path: string; value: string }[];
    const { value: query } = patch.find(({ path }) => path.endsWith('/query')) ?? { value: '' };
    expect(query).not.toBe('');
    expect(unknownIn(query)).toEqual([]);
  });
});

describe('a query', () => {
  it.each([
    ['a metric', 'sum(quillgate_queue_job)'],
    ['a label', 'quillgate_queue_jobs{status="waiting"}'],
    ['a value', 'quillgate_queue_jobs{state="waitin"}'],
    ['one of several values', 'quillgate_chat_requests_total{code=~"timeout|time_out"}'],
    ['a label to group by', 'max by (instance) (quillgate_queue_jobs)'],
    ['a histogram without its ending', 'rate(quillgate_queue_wait_seconds[5m])'],
    ['the buckets of what has none', 'sum by (le) (rate(quillgate_queue_wait_seconds_count[5m]))'],
  ])('with %s that is not there -> is found', (_title, query) => {
    expect(unknownIn(query)).toHaveLength(1);
  });
});
