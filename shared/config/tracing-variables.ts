import { z } from 'zod';
import { choice, httpUrl, milliseconds, secret, text } from './variable-types.js';

/** OpenTelemetry's exporter would take its default address for one with a blank. */
const endpoint = z
  .string()
  .regex(
    /^[^\s@?#]*$/,
    'must have no blanks, credentials, query or fragment; credentials belong in OTEL_EXPORTER_OTLP_HEADERS',
  )
  .pipe(httpUrl);

const notShare = { error: 'must be a number from 0 to 1' };
const share = z.coerce.number(notShare).min(0, notShare).max(1, notShare);

const pairsError = 'must be a comma list of key=value, percent-encoded';
/** OpenTelemetry's detector would drop the whole list for one that is longer. */
const pairs = /^(\s*([^\s=,%]|%[\da-f]{2}){1,255}\s*=([^=,%]|%[\da-f]{2}){0,255}(,|$))+$/i;
/** Pairs that a request can carry as headers (RFC 9110, 5.5). */
const headers = /^(\s*[\w!#$\&'*+.^`\|~\-]+\s*=([[\t\x20-\x7e]--[,;%]]|%[2-7][\da-f])*(,|$))+$/iv;

/**
 * Where traces go, and which: https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/.
 * OpenTelemetry's exporters and detectors read address, headers, timeout, name and attributes from the environment
 * themselves; here these are described and checked.
 */
export const tracingVariables = {
  OTEL_EXPORTER_OTLP_ENDPOINT: endpoint
    .optional()
    .describe(
      'Base address of the OpenTelemetry collector that gets the traces, by OTLP over HTTP at /v1/traces below it (http://collector:4318); without it there are no traces, and their code is not loaded.',
    ),
  OTEL_EXPORTER_OTLP_HEADERS: secret(
    z.string().regex(headers, `${pairsError}, of headers`),
    'Headers for the collector, as a comma list of key=value, percent-encoded.',
  ),
  OTEL_EXPORTER_OTLP_PROTOCOL: choice(['http/protobuf', 'http/json'])
    .default('http/protobuf')
    .describe('Format of the traces.'),
  OTEL_EXPORTER_OTLP_TIMEOUT: milliseconds(1)
    .default(10_000)
    .describe('Longest export of a batch, its retries included, in milliseconds.'),
  OTEL_BSP_SCHEDULE_DELAY: milliseconds(10)
    .default(5000)
    .describe('Time between two exports, in milliseconds; a full batch of 512 spans goes at once.'),
  OTEL_SERVICE_NAME: text
    .optional()
    .describe('Name of the service in traces; quillgate-api and quillgate-worker when it is not set.'),
  OTEL_RESOURCE_ATTRIBUTES: z
    .string()
    .regex(pairs, `${pairsError}, with at most 255 characters on each side`)
    .optional()
    .describe('Further attributes of the service in traces, as a comma list of key=value, percent-encoded.'),
  OTEL_TRACES_SAMPLER: choice([
    'always_on',
    'always_off',
    'traceidratio',
    'parentbased_always_on',
    'parentbased_always_off',
    'parentbased_traceidratio',
  ])
    .default('parentbased_always_on')
    .describe(
      'Which traces are recorded: all, none or a share (traceidratio); with parentbased_ a caller who sends a traceparent decides.',
    ),
  OTEL_TRACES_SAMPLER_ARG: share.default(1).describe('The share for traceidratio, from 0 to 1.'),
  OTEL_SDK_DISABLED: choice(['true', 'false']).default('false').describe('Whether traces are switched off.'),
};
