import { readFileSync } from 'node:fs';
import { providerIds } from '../../shared/contracts/contract.js';

interface Target {
  readonly expr: string;
  readonly legendFormat: string;
  readonly datasource: { readonly uid: string };
}

interface Panel {
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly datasource?: { readonly uid: string };
  readonly fieldConfig?: { readonly defaults: { readonly unit?: string } };
  readonly targets?: readonly Target[];
}

/** Those of Grafana's dashboard. */
export const { panels }: { panels: readonly Panel[] } = JSON.parse(
  readFileSync('deploy/grafana/dashboards/quillgate.json', 'utf8'),
);

export const queriesOf = ({ targets = [] }: Panel): string[] => targets.map(({ expr }) => expr);

/** The query as Grafana sends it when all providers are chosen. */
export const withoutVariables = (query: string): string =>
  query.replaceAll('$__rate_interval', '1m').replaceAll('$provider', providerIds.join('|'));
