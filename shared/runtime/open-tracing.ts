import type { Config } from '../config/config.js';
import type { Log } from './log.js';
import type { Tracing } from './tracing.js';

/** The dependencies of the program's traces. */
export interface TracingDeps {
  config: Config;
  program: 'api' | 'worker';
  log: Log;
  /** How long the last export may take at shutdown, in milliseconds. */
  closingMs?: number;
}

/** Records the program's traces; undefined when they are off, and then nothing is loaded. */
export async function openTracing(deps: TracingDeps): Promise<Tracing | undefined> {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SDK_DISABLED: disabled } = deps.config;
  if (endpoint === undefined || disabled === 'true') return undefined;
  const { openOtlpTracing } = await import('./otlp-tracing.js');
  return openOtlpTracing(deps);
}
