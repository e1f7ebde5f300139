import { apiMetrics, type MetricDefinition, workerMetrics } from '../../shared/metrics/metrics.js';

const metrics: readonly MetricDefinition[] = [...Object.values(apiMetrics), ...Object.values(workerMetrics)];

type Labels = MetricDefinition['labels'];

/** The labels of every name that a query may use, as Prometheus sees them: a histogram has three names. */
const seriesLabels = new Map(metrics.flatMap(seriesOf));

function seriesOf({ name, type, labels, buckets = [] }: MetricDefinition): [string, Labels][] {
  if (type !== 'histogram') return [[name, labels]];
  return [
    [`${name}_bucket`, { ...labels, le: [...buckets.map(String), '+Inf'] }],
    [`${name}_count`, labels],
    [`${name}_sum`, labels],
  ];
}

/** The names of our metrics that a text has none of the series of. */
export const metricsMissingIn = (text: string): string[] => {
  const named = new Set([...text.matchAll(/quillgate_\w+/g)].map(([name]) => name));
  return metrics
    .filter((metric) => !seriesOf(metric).some(([name]) => named.has(name)))
    .map(({ name }) => name);
};

/** Names that begin like a metric's, and are none. */
export const unknownMetrics = (text: string): string[] =>
  [...text.matchAll(/quillgate_\w+/g)].flatMap(([name]) => (seriesLabels.has(name) ? [] : [name]));

/** Metrics, labels and values of labels in a query that do not exist. */
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

const labelsOf = (name = ''): Labels => seriesLabels.get(name) ?? {};

/** `matchers` is what stands between braces; of a regular expression the alternatives are looked at. */
const unknownMatchers = (labels: Labels, matchers: string): string[] =>
  [...matchers.matchAll(/(\w+)(?:=~|!~|!=|=)"([^"]*)"/g)].flatMap(([matcher, label = '', values = '']) =>
    values.split('|').every((value) => labels[label]?.includes(value)) ? [] : [matcher],
  );
