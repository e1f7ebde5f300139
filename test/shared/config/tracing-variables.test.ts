import { describe, expect, it } from 'vitest';
import { ConfigError, parseConfig } from '../../../shared/config/config.js';

const parse = (name: string, value: string) => parseConfig({ [name]: value }, 'config');

describe('the variables of traces', () => {
  it('ask for none by default', () => {
    const { OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SDK_DISABLED } = parse('LOG_LEVEL', 'info');
    expect([OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SDK_DISABLED]).toEqual([undefined, 'false']);
  });

  it.each([
    ['OTEL_EXPORTER_OTLP_HEADERS', ' authorization = Basic%20dXNlcjpwYXNz== , x-empty=,'],
    ['OTEL_RESOURCE_ATTRIBUTES', 'team=caf%C3%A9, a%2Cb = 1;2 '],
  ])('are taken as they are: %s=%s', (name, value) => {
    expect(parse(name, value)).toMatchObject({ [name]: value });
  });

  it.each([
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'grpc://canary:4317'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://user:canary@collector:4318'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://collector:4318/?key=canary'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://canary:4318 '],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'canary'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'x-key=canary%0d%0ax-other%3A1'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'x%0akey=canary'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'x-key=canary%E2%82%AC'],
    ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc'],
    ['OTEL_EXPORTER_OTLP_TIMEOUT', '10s canary'],
    ['OTEL_RESOURCE_ATTRIBUTES', 'canary'],
    ['OTEL_RESOURCE_ATTRIBUTES', '=canary'],
    ['OTEL_RESOURCE_ATTRIBUTES', 'a=canary,b=%'],
    ['OTEL_RESOURCE_ATTRIBUTES', 'a=canary,b c=1'],
    ['OTEL_RESOURCE_ATTRIBUTES', 'a=canary,b=1=2'],
    ['OTEL_RESOURCE_ATTRIBUTES', `a=canary,b=${'c'.repeat(256)}`],
    ['OTEL_TRACES_SAMPLER', 'canary'],
    ['OTEL_TRACES_SAMPLER_ARG', '1.1'],
    ['OTEL_SDK_DISABLED', 'canary'],
  ])('are refused by name and not by value: %s=%s', (name, value) => {
    const refused = () => parse(name, value);
    expect(refused).toThrow(ConfigError);
    expect(refused).toThrow(new RegExp(`^Configuration problems:\\n {2}${name}: (?!.*canary)`));
  });
});
