import { describe, expect, it } from 'vitest';
import {
  ConfigError,
  type Environment,
  namesSet,
  type Program,
  parseConfig,
} from '../../../shared/config/config.js';
import { configuredSettings, defaultSettings, poolConfig } from '../../../shared/config/pool-config.js';
import { hasCredentials } from '../../../shared/config/provider-credentials.js';
import { type ProviderId, providerIds } from '../../../shared/contracts/contract.js';

const parse = (environment: Environment) => parseConfig(environment, 'config');

function problemsOf(environment: Environment, program: Program = 'config'): readonly string[] {
  try {
    parseConfig(environment, program);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

/** The variables that the problems begin with. */
const named = (problems: readonly string[]) => problems.map((problem) => problem.split(':')[0]);

const canary = 'canary-value';
const wrong = {
  PORT: canary,
  WORKER_PORT: '65536',
  METRICS_PORT: canary,
  CHAT_BASE_URL: canary,
  DATABASE_URL: `mysql://${canary}`,
  REDIS_URL: `https://${canary}`,
  CHAT_USERNAME: `${canary}:`,
  CHAT_PASSWORD: canary,
  ADMIN_USERNAME: `${canary}:`,
  ADMIN_PASSWORD: canary,
  BLOG_TOKEN: canary,
  CHAT_TOKEN: canary,
  BLOG_READS: canary,
  BLOG_BASE_URL: canary,
  TRUSTED_PROXIES: canary,
  DATABASE_POOL_SIZE: '0',
  CHAT_TIMEOUT_MS: `60s ${canary}`,
  CHAT_USER_MAX_IN_FLIGHT: '0',
  CHAT_USER_MAX_PER_MINUTE: canary,
  MAX_BODY_BYTES: '1',
  LOG_LEVEL: canary,
  WORKER_PROVIDERS: canary,
  REAL_PROVIDERS: canary,
  OPENAI_BASE_URL: `http://${canary}.example`,
  OPENAI_CONCURRENCY: '0',
};

describe('parseConfig', () => {
  it.each(['', ' ', '\t'])('%j -> is taken for a value that is not set', (blank) => {
    const names = Object.keys(parse({}));
    expect(parse(Object.fromEntries(names.map((name) => [name, blank])))).toEqual(parse({}));
    expect(parse({ REDIS_URL: blank, OPENAI_API_KEY: blank })).not.toHaveProperty('REDIS_URL');
  });

  it('several problems -> each is named at once, and never a value', () => {
    expect(named(problemsOf(wrong)).sort()).toEqual(Object.keys(wrong).sort());
    expect(problemsOf(wrong).join()).not.toContain(canary);
    expect(() => parse(wrong)).toThrow(
      expect.not.objectContaining({ message: expect.stringContaining(canary) }),
    );
  });

  // Missing variables are only looked for once none is wrong, so the operator needs a second try to see them.
  it('what is missing -> is told together with what is wrong', () => {
    expect(named(problemsOf({ PORT: 'abc' }, 'api'))).toEqual(
      expect.arrayContaining(['PORT', 'DATABASE_URL']),
    );
  });

  it('a wrong value of any type -> plain words say what it must be', () => {
    const variables = { ...wrong, OTEL_TRACES_SAMPLER_ARG: '2', BLOG_TITLE: 'x'.repeat(301) };
    for (const problem of problemsOf(variables)) expect(problem).toMatch(/^\w+: (must|is not|cannot) /);
    expect(problemsOf({ ...variables, CHAT_PASSWORD: 'short' })).toEqual(
      expect.arrayContaining([
        'CHAT_PASSWORD: must have at least 16 characters',
        'LOG_LEVEL: must be one of: fatal, error, warn, info, debug, trace, silent',
        'OPENAI_CONCURRENCY: must be a whole number from 1 to 10000',
        'OTEL_TRACES_SAMPLER_ARG: must be a number from 0 to 1',
      ]),
    );
  });

  it('one port for two things that the API serves -> is refused', () => {
    const api = { DATABASE_URL: 'postgres://localhost/x' };
    expect(named(problemsOf({ ...api, METRICS_PORT: '3000' }, 'api'))).toEqual(['METRICS_PORT']);
    expect(problemsOf({ ...api, METRICS_PORT: '3000', PORT: '8080' }, 'api')).toEqual([]);
    expect(problemsOf({ ...api, METRICS_PORT: '0', PORT: '0' }, 'api')).toEqual([]);
  });

  it.each([
    ['OPENAI_BASE_URL', 'https://example.com/v1'],
    ['OPENAI_BASE_URL', 'http://localhost:8080'],
    ['OPENAI_BASE_URL', 'http://LOCALHOST:8080'],
    ['OPENAI_BASE_URL', 'http://127.0.0.1:1'],
    ['OPENAI_BASE_URL', 'http://[::1]:1'],
    ['WORKER_PROVIDERS', ' vertexai , openai', ['vertexai', 'openai']],
    // Each mention would start a pool, and both would report under the same worker's name.
    ['WORKER_PROVIDERS', 'openai,openai', ['openai']],
    ['BEDROCK_MAX_OUTPUT_TOKENS', '32000, us.*=8192', ['32000', 'us.*=8192']],
    ['TRUSTED_PROXIES', '', undefined],
    ['TRUSTED_PROXIES', '10.0.0.0/8, loopback', ['10.0.0.0/8', 'loopback']],
    ['TRUSTED_PROXIES', '::1,192.168.1.1', ['::1', '192.168.1.1']],
    ['BLOG_IMAGES', 'https', ['https']],
    ['BLOG_IMAGES', 'none', ['none']],
    ['IMAGE_HOSTS', '*.example.org', ['*.example.org']],
    ['BLOG_IMAGES', ' images.example.org,*.example.net:8443 ', ['images.example.org', '*.example.net:8443']],
    [
      'MODEL_ALIASES',
      ' gpt-5=anthropic/claude-x , o4*=bedrock/eu.x:0,*=openai/m',
      [
        { name: 'gpt-5', provider: 'anthropic', model: 'claude-x' },
        { name: 'o4*', provider: 'bedrock', model: 'eu.x:0' },
        { name: '*', provider: 'openai', model: 'm' },
      ],
    ],
    ['CHAT_PASSWORD', '0f47ac10b58cc437'],
    ['BLOG_TOKEN', '4915-1771-8063-2941-5510-9327-6604-83'],
  ])('as %s %j -> is taken', (name, value, ...expected: unknown[]) => {
    const found = new Map(Object.entries(parse({ [name]: value }))).get(name);
    expect(found).toEqual(expected.length > 0 ? expected[0] : value);
  });

  const images = 'must be https, none, or a comma list of hosts such as images.example.org';
  const guessed = 'must have at least 8 different characters';
  it.each([
    [
      'PORT',
      'must be a whole number from 1 to 65535, or 0 for any free port',
      'abc -1 -1.5 65536 Infinity 3000x',
    ],
    ['WORKER_PROVIDERS', 'must be', ', openai, OpenAI openai;bedrock openai%20bedrock __proto__'],
    ['VERTEXAI_MODELS', 'must', `, gpt-5, a%20b gpt%205 -x é ${'x'.repeat(257)} ${'x,'.repeat(60)}`],
    ['PROVIDER_MAX_RESPONSE_BYTES', 'must be a whole number', '65535 268435457 1e9 many'],
    ['OPENAI_MAX_OUTPUT_TOKENS', 'must be a whole number', ', 0 -1 1.5 1e9 99999999 =5 a%20b=5 m= many'],
    ['IMAGE_HOSTS', images, ', none,https https: * 10.0.0.1/8'],
    ['TRUSTED_PROXIES', 'must', 'true 1 proxy.example 10.0.0.0/40'],
    [
      'BLOG_IMAGES',
      images,
      ", none,https https: https://x.org x.org/a x.org;%20script-src%20'self' * x..org",
    ],
    [
      'MODEL_ALIASES',
      'must be a comma list',
      'a a=b a=openai a=azure/b openai/a=openai/b a*b=openai/c *a=openai/b a=openai/b* =openai/b a=b=openai/c a%20b=openai/c a=openai/b,a=openai/c',
    ],
    ['CHAT_PASSWORD', guessed, `${'x'.repeat(16)} passwordpassword`],
    ['ADMIN_PASSWORD', guessed, 'x'.repeat(16)],
    ['BLOG_TOKEN', guessed, 'abcabc1'.repeat(5)],
    ['CHAT_TOKEN', guessed, 'abcabc1'.repeat(5)],
  ])('a wrong %s -> is refused with "%s", and not repeated', (name, complaint, values) => {
    for (const value of values.split(' ').map(decodeURIComponent)) {
      const problems = problemsOf({ [name]: value });
      expect(problems.length, value).toBeGreaterThan(0);
      for (const problem of problems) expect(problem).toMatch(new RegExp(`^${name}: ${complaint}`));
      expect(problems.join()).not.toContain('gpt');
    }
  });

  const elsewhere =
    'http://example.com http://localhost.example.com http://127.0.0.1@example.com http://127.0.0.1.example.com ' +
    'http://0.0.0.0:1 http://10.0.0.1 ftp://localhost file:///etc/passwd localhost:8080 //localhost';
  it.each(elsewhere.split(' '))('%s -> no provider may be there', (url) => {
    const variables =
      'OPENAI_BASE_URL ANTHROPIC_BASE_URL AWS_ENDPOINT_URL_BEDROCK_RUNTIME GOOGLE_VERTEX_BASE_URL'.split(' ');
    const problems = problemsOf(Object.fromEntries(variables.map((name) => [name, url])));
    expect([...new Set(named(problems))]).toEqual(variables);
  });

  it('no database -> the API and who migrates it demand one', () => {
    expect(named(problemsOf({ REDIS_URL: 'redis://localhost' }, 'api'))).toEqual(['DATABASE_URL']);
    expect(named(problemsOf({}, 'migrate'))).toEqual(['DATABASE_URL']);
    expect(problemsOf({ DATABASE_URL: 'postgres://localhost/x' }, 'api')).toEqual([]);
  });

  it.each(['CHAT', 'ADMIN'])(
    'one half of the name and password of %s -> the API wants the other',
    (whose) => {
      const halves = [`${whose}_USERNAME`, `${whose}_PASSWORD`];
      for (const half of halves) {
        const given = { [half]: 'a secret of some length', DATABASE_URL: 'postgres://localhost/x' };
        expect(named(problemsOf(given, 'api'))).toEqual(halves.filter((other) => other !== half));
      }
    },
  );

  it.each(['CHAT_BASE_URL', 'CHAT_BASE_URL_ALT', 'BLOG_BASE_URL'])(
    '%s below /admin -> is refused',
    (name) => {
      const problem = `${name}: must not be below /admin, where the operators have their addresses`;
      for (const path of ['/admin', '/admin/', '/admin/chat', '/x/../admin'])
        expect(problemsOf({ [name]: `https://example.com${path}` }), path).toEqual([problem]);
      for (const path of ['', '/administrators', '/x/admin', '/Admin'])
        expect(problemsOf({ [name]: `https://example.com${path}` }), path).toEqual([]);
    },
  );

  it('one name for chat and the console -> is refused', () => {
    const problems = problemsOf({ CHAT_USERNAME: 'ada', ADMIN_USERNAME: 'ada' });
    expect(problems).toEqual(['ADMIN_USERNAME: must not be the same as CHAT_USERNAME']);
    expect(problemsOf({ CHAT_USERNAME: 'ada', ADMIN_USERNAME: 'Ada' })).toEqual([]);
  });

  it("demands a store and one of its providers' credentials of a worker", () => {
    const listed = { WORKER_PROVIDERS: 'openai,bedrock', ANTHROPIC_API_KEY: 'x' };
    expect(problemsOf(listed, 'worker')).toEqual([
      expect.stringContaining('REDIS_URL or DATABASE_URL'),
      expect.stringContaining('OPENAI_API_KEY'),
      expect.stringContaining('AWS_REGION'),
    ]);
    for (const given of [{ AWS_REGION: 'eu-west-1' }, { SIMULATOR_URL: 'http://simulator:3002' }])
      expect(problemsOf({ ...listed, ...given, REDIS_URL: 'rediss://localhost' }, 'worker')).toEqual([]);
  });
});

describe('hasCredentials', () => {
  it.each([
    ['openai', { OPENAI_API_KEY: 'x' }, true],
    ['openai', { ANTHROPIC_API_KEY: 'x', OPENAI_BASE_URL: 'https://x.example' }, false],
    ['anthropic', { ANTHROPIC_API_KEY: 'x' }, true],
    ['bedrock', { AWS_REGION: 'x' }, true],
    ['bedrock', { AWS_ACCESS_KEY_ID: 'x' }, false],
    ['vertexai', { GOOGLE_API_KEY: 'x' }, true],
    ['vertexai', { GOOGLE_CLOUD_PROJECT: 'x' }, true],
    ['vertexai', { GOOGLE_CLOUD_LOCATION: 'x' }, false],
  ] as const)('of %s with %o is %s', (id, environment, expected) => {
    expect(hasCredentials(namesSet(parse(environment)), id)).toBe(expected);
  });
});

describe('poolConfig', () => {
  it.each(providerIds)('reads the variables of %s and of nobody else', (id) => {
    const variables = {
      ...{ CONCURRENCY: '7', MODEL: 'm', MODELS: 'm, n-*', MAX_OUTPUT_TOKENS: '9', TIMEOUT_MS: '100' },
      ...{ FIRST_TOKEN_TIMEOUT_MS: '101', IDLE_TIMEOUT_MS: '102', FALLBACK_AFTER_MS: '103' },
    };
    const own = Object.entries(variables).map(([name, value]) => [`${id.toUpperCase()}_${name}`, value]);
    const config = parse({ BREAKER_RESET_MS: '700', ...Object.fromEntries(own) });
    expect(poolConfig(config, id)).toEqual({
      ...{ concurrency: 7, model: 'm', models: ['m', 'n-*'], maxOutputTokens: ['9'], breakerResetMs: 700 },
      ...{ timeoutMs: 100, firstTokenTimeoutMs: 101, idleTimeoutMs: 102, fallbackAfterMs: 103 },
    });
    for (const other of providerIds.filter((one) => one !== id))
      expect(poolConfig(config, other)).toMatchObject({ concurrency: 100, timeoutMs: 600_000 });
  });

  const url = 'https://models.example.org';
  it.each<[ProviderId, Environment, firstTokenTimeoutMs: number, idleTimeoutMs: number]>([
    ['openai', {}, 60_000, 300_000],
    ['anthropic', {}, 60_000, 300_000],
    ['bedrock', {}, 300_000, 600_000],
    ['vertexai', {}, 300_000, 600_000],
    // Nothing is known of a server of others.
    ['openai', { OPENAI_BASE_URL: url }, 300_000, 600_000],
    ['anthropic', { ANTHROPIC_BASE_URL: url }, 300_000, 600_000],
    ['openai', { OPENAI_BASE_URL: url, OPENAI_IDLE_TIMEOUT_MS: '7000' }, 300_000, 7000],
    ['openai', { OPENAI_BASE_URL: url, SIMULATOR_URL: 'http://s' }, 60_000, 300_000],
  ])('%s with %j -> a model may think in silence for %i ms, then %i', (id, environment, first, idle) => {
    const times = { firstTokenTimeoutMs: first, idleTimeoutMs: idle };
    const config = parse(environment);
    expect(poolConfig(config, id)).toMatchObject(times);
    expect({ ...defaultSettings(id), ...configuredSettings(config, id) }).toMatchObject(times);
  });

  it.each<[ProviderId, Environment, beforeFallbackMs: number | undefined]>([
    ['openai', { OPENAI_BASE_URL: url }, 60_000],
    ['anthropic', { ANTHROPIC_BASE_URL: url }, 60_000],
    ['openai', { OPENAI_BASE_URL: url, OPENAI_FIRST_TOKEN_TIMEOUT_MS: '90000' }, undefined],
    ['openai', {}, undefined],
    ['bedrock', { OPENAI_BASE_URL: url }, undefined],
    ['vertexai', { GOOGLE_VERTEX_BASE_URL: url }, undefined],
  ])('%s with %j -> a fallback waits %s ms for a sign of life', (id, environment, ms) => {
    expect(poolConfig(parse(environment), id).firstTokenBeforeFallbackMs).toBe(ms);
  });

  it("leaves the real provider's models out where the simulator plays it", () => {
    const settings = poolConfig(parse({ SIMULATOR_URL: 'http://s', OPENAI_MODELS: 'gpt-*' }), 'openai');
    expect([settings.model, settings.models, settings.isSimulated]).toEqual(['sim-echo', undefined, true]);
  });
});

describe('configuredSettings', () => {
  it('has what the environment sets of a provider, and not what is at its default', () => {
    const config = parse({ OPENAI_CONCURRENCY: '7', OPENAI_TIMEOUT_MS: '600000', BEDROCK_CONCURRENCY: '9' });
    expect(configuredSettings(config, 'openai')).toEqual({ concurrency: 7 });
    expect(defaultSettings('openai')).toMatchObject({ timeoutMs: 600_000, idleTimeoutMs: 300_000 });
  });
});
