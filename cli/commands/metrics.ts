import {
  apiMetrics,
  type MetricDefinition,
  type MetricTable,
  workerMetrics,
} from '../../shared/metrics/metrics.js';

/** `quillgate metrics`: the tables of `docs/metrics.md`, with those of the labels that have many values at the end. */
export function renderMetrics(): string {
  return [
    '## On the API',
    '',
    ...table(apiMetrics),
    '',
    '## On a worker',
    '',
    ...table(workerMetrics),
    '',
    '## Values of `code`',
    '',
    ...codes([...Object.values(apiMetrics), ...Object.values(workerMetrics)]),
    '',
  ].join('\n');
}

function table(metrics: MetricTable): string[] {
  const rows = Object.values(metrics).map(
    (metric) => `| \`${metric.name}\` | ${metric.type} | ${labels(metric)} | ${metric.help} |`,
  );
  return ['| metric | type | labels | what it is |', '|---|---|---|---|', ...rows];
}

/** Labels whose values are listed elsewhere. */
const described = new Set(['code', 'release']);

function labels({ labels }: MetricDefinition): string {
  const cells = Object.entries(labels).map(([label, values]) =>
    described.has(label) ? `\`${label}\`` : `\`${label}\`: ${values.join(', ')}`,
  );
  return cells.length === 0 ? '–' : cells.join('; ');
}

function codes(metrics: MetricDefinition[]): string[] {
  const withCodes = metrics.filter(({ labels }) => labels.code !== undefined);
  const groups = Map.groupBy(withCodes, ({ labels }) => labels.code);
  const rows = [...groups].map(([values = [], its]) => {
    const names = its.map(({ name }) => `\`${name}\``).join(', ');
    return `| ${names} | ${values.join(', ')} |`;
  });
  return ['| metrics | values |', '|---|---|', ...rows];
}
