import type { Tracing, TracingDeps } from './tracing.js';

/** Records the program's traces; undefined when they are off, and then nothing is loaded. */
export async function openTracing(deps: TracingDeps): Promise<Tracing | undefined> {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SDK_DISABLED: disabled } = deps.config;
  if (endpoint === undefined || disabled === 'true') return undefined;
  const { openOtlpTracing } = await import('./otlp-tracing.js');
  return openOtlpTracing(deps);
}
