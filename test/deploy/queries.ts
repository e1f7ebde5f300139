import { apiMetrics, type MetricDefinition, workerMetrics } from '../../shared/metrics/metrics.js';

const metrics: readonly MetricDefinition[] = [...Object.values(apiMetrics), ...Object.values(workerMetrics)];

/** Every name that a query may use, as Prometheus sees them: a histogram has three. */
const seriesNames = new Map(
  metrics.flatMap((metric) =>
    (metric.type === 'histogram' ? ['_bucket', '_count', '_sum'] : ['']).map(
      (ending) => [`${metric.name}${ending}`, metric] as const,
    ),
  ),
);

/** Names of ours in any text that are no metric. */
export const unknownMetrics = (text: string): string[] =>
  [...text.matchAll(/quillgate_\w+/g)].flatMap(([name]) => (seriesNames.has(name) ? [] : [name]));

/** What a query asks of our metrics that they do not have: metrics, labels, and values of labels. */
export function unknownIn(query: string): string[] {
  const selectors = [...query.matchAll(/(quillgate_\w+)(?:\{([^}]*)\})?/g)];
  const labels = new Set(selectors.flatMap(([, name]) => Object.keys(labelsOf(name))));
  const groups = [...query.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(', '));
  return [
    ...unknownMetrics(query),
    ...selectors.flatMap(([, name, matchers = '']) => unknownMatchers(labelsOf(name), matchers)),
    ...groups.filter((label) => !labels.has(label)),
  ];
}

const labelsOf = (name = ''): MetricDefinition['labels'] => seriesNames.get(name)?.labels ?? {};

/** `matchers` is what stands between braces; of a regular expression the alternatives are looked at. */
const unknownMatchers = (labels: MetricDefinition['labels'], matchers: string): string[] =>
  [...matchers.matchAll(/(\w+)(?:=~|!~|!=|=)"([^"]*)"/g)].flatMap(([matcher, label = '', values = '']) =>
    values.split('|').every((value) => labels[label]?.includes(value)) ? [] : [matcher],
  );
