import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { environmentSchema } from '../../../shared/config/config.js';
import { unknownVariables } from '../../../shared/config/unknown-variables.js';

const warningsOf = (...names: string[]) =>
  unknownVariables(Object.fromEntries(names.map((name) => [name, 'canary'])));

describe('unknownVariables', () => {
  it.each([
    ['OPENAI_CONCURENCY', 'OPENAI_CONCURRENCY'],
    ['PROT', 'PORT'],
    ['DATABASE_URI', 'DATABASE_URL'],
    ['REDISURL', 'REDIS_URL'],
    ['AWS_REGOIN', 'AWS_REGION'],
    ['CHAT_USER_NAME', 'CHAT_USERNAME'],
    ['CHAT_TIMEOUT', 'CHAT_TIMEOUT_MS'],
    ['BREAKER_RESET', 'BREAKER_RESET_MS'],
  ])('asks whether %s was meant to be %s, without its value', (name, meant) => {
    expect(warningsOf(name)).toEqual([`Unknown variable ${name} is ignored. Did you mean ${meant}?`]);
  });

  it.each(['OPENAI_MAX_TOKENS', 'CHAT_RATE', 'BLOG_THEME', 'VERTEXAI_API_KEY'])('names %s', (name) => {
    expect(warningsOf(name)).toEqual([`Unknown variable ${name} is ignored.`]);
  });

  it('says nothing of ours, of what has no value, and of what other programs and platforms read', () => {
    expect(warningsOf(...Object.keys(environmentSchema.shape))).toEqual([]);
    expect(unknownVariables({ PROT: ' ', CHAT_RATE: '', BLOG_THEME: undefined })).toEqual([]);
    const usual =
      'HOME HOSTNAME PATH PWD USER TERM LANG SHELL SHLVL EDITOR DISPLAY MAIL TZ CI DEBUG NODE_ENV';
    const sdks =
      'OPENAI_ORG_ID OPENAI_LOG ANTHROPIC_AUTH_TOKEN AWS_PROFILE AWS_ACCESS_KEY_ID AWS_DEFAULT_REGION';
    const more =
      'GOOGLE_APPLICATION_CREDENTIALS GOOGLE_CLOUD_QUOTA_PROJECT OTEL_LOG_LEVEL OTEL_BSP_MAX_QUEUE_SIZE';
    const kubernetes = 'WORKER_SERVICE_HOST CHAT_SERVICE_PORT_HTTP CHAT_PORT_80_TCP_ADDR REDIS_PORT';
    expect(warningsOf(...[usual, sdks, more, kubernetes].join(' ').split(' '))).toEqual([]);
    const compose = readFileSync('docker-compose.yml', 'utf8').match(/(?<=\$\{)[A-Z_]+/g) ?? [];
    expect(warningsOf(...compose)).toEqual([]);
  });

  it('says nothing of the names that the SDKs in use read', () => {
    const sources = ['openai/client.js', '@anthropic-ai/sdk/client.js'].map((path) =>
      readFileSync(`node_modules/${path}`, 'utf8'),
    );
    const names = sources.join('').match(/(?<=readEnv\)?\(')[A-Z_]+/g) ?? [];
    expect(names).toContain('OPENAI_ORG_ID');
    expect(warningsOf(...names)).toEqual([]);
  });
});
