import { failureCodes } from '../../shared/failures.js';
import {
  apiMetrics,
  type MetricDefinition,
  type MetricTable,
  workerMetrics,
} from '../../shared/metrics/metrics.js';

/** `quillgate metrics`: the lists of `docs/metrics.md`, with the values of the label `code` at the end. */
export function renderMetrics(): string {
  return [
    '## On the API\n',
    ...list(apiMetrics),
    '\n## On a worker\n',
    ...list(workerMetrics),
    '\n## Values of `code`\n',
    ...codes([...Object.values(apiMetrics), ...Object.values(workerMetrics)]),
    '',
  ].join('\n');
}

const list = (metrics: MetricTable): string[] =>
  Object.values(metrics).map(({ name, type, labels, help }) =>
    item(`\`${name}\` (${[type, ...labelsOf(labels)].join(', ')}): ${help}`),
  );

/** An item of a list, in lines of 120 characters at most. */
const item = (text: string): string => `- ${text}`.replaceAll(/(?=.{119})(.{1,117}) /g, '$1\n  ');

/** Labels whose values are listed elsewhere. */
const described = new Set(['code', 'release', 'provider', 'next']);

function labelsOf(labels: MetricDefinition['labels']): string[] {
  return Object.entries(labels).map(([label, values]) =>
    described.has(label) ? `\`${label}\`` : `\`${label}\`: ${values.join('/')}`,
  );
}

/** An item for each set of values; that of all failures leads to their page. */
function codes(metrics: MetricDefinition[]): string[] {
  const withCodes = metrics.filter(({ labels }) => labels.code !== undefined);
  const groups = Map.groupBy(withCodes, ({ labels }) => labels.code);
  return [...groups].map(([values = [], its]) => {
    const names = its.map(({ name }) => `\`${name}\``).join(', ');
    return item(`${names}: ${shortened(values).join(', ')}`);
  });
}

function shortened(values: readonly string[]): string[] {
  const failures: readonly string[] = failureCodes;
  if (!failures.every((code) => values.includes(code))) return [...values];
  return [...values.filter((value) => !failures.includes(value)), 'and each of the [codes](errors.md)'];
}
