import type { Config } from '../config/config.js';
import type { Log } from './log.js';
import type { Tracing } from './tracing.js';

/** What the program's traces are recorded with. */
export interface TracingDeps {
  config: Config;
  program: 'api' | 'worker';
  log: Log;
}

/** What records the program's traces; undefined when they are not wanted, and then nothing is loaded. */
export async function openTracing(deps: TracingDeps): Promise<Tracing | undefined> {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SDK_DISABLED: disabled } = deps.config;
  if (endpoint === undefined || disabled === 'true') return undefined;
  const { openOtlpTracing } = await import('./otlp-tracing.js');
  return openOtlpTracing(deps);
}
