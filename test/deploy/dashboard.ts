import { readFileSync } from 'node:fs';
import { providerIds } from '../../shared/contract.js';

interface Target {
  readonly expr: string;
  readonly legendFormat: string;
  readonly datasource: { readonly uid: string };
}

export interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly datasource?: { readonly uid: string };
  readonly fieldConfig?: { readonly defaults: { readonly unit?: string } };
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly Target[];
}

interface Dashboard {
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly definition?: string }[] };
}

/** The dashboard of Grafana. */
export const dashboard: Dashboard = JSON.parse(
  readFileSync('deploy/grafana/dashboards/quillgate.json', 'utf8'),
);

export const { panels } = dashboard;

export const queriesOf = ({ targets = [] }: Panel): string[] => targets.map(({ expr }) => expr);

/** The query as Grafana sends it when all providers are chosen. */
export const withoutVariables = (query: string): string =>
  query.replaceAll('$__rate_interval', '1m').replaceAll('$provider', providerIds.join('|'));
