import { describe, expect, it } from 'vitest';
import { quillgate, type Ran } from '../../support/command-line.js';
import { withLag } from '../../support/lateness.js';

const canary = 'canary-of-a-value';
const wrong = {
  PORT: canary,
  CHAT_BASE_URL: canary,
  DATABASE_URL: `postgres://user:${canary}@127.0.0.1/x?unknown=${canary}`,
  REDIS_URL: `https://:${canary}@127.0.0.1`,
  CHAT_PASSWORD: 'canary',
  BLOG_TOKEN: `${canary} with spaces and long enough`,
  TRUSTED_PROXIES: canary,
  CHAT_TIMEOUT_MS: canary,
  CHAT_USER_MAX_IN_FLIGHT: canary,
  CHAT_USER_MAX_PER_MINUTE: '-1',
  LOG_LEVEL: canary,
  WORKER_PROVIDERS: canary,
  OPENAI_BASE_URL: `http://${canary}.example`,
  VERTEXAI_CONCURRENCY: '0',
};
const wrongNames = Object.keys(wrong);

const providers = ['OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'AWS_REGION', 'GOOGLE_API_KEY'];
const somewhere = { DATABASE_URL: `postgres://user:${canary}@127.0.0.1:1/x` };

interface Case {
  program: string;
  when: string;
  environment: Record<string, string>;
  names: string[];
}

const cases: Case[] = [
  ...['api', 'worker', 'migrate', 'start'].map((program) => ({
    program,
    when: 'everything is wrong',
    environment: wrong,
    names: wrongNames,
  })),
  { program: 'api', when: 'there is nothing', environment: {}, names: ['DATABASE_URL'] },
  {
    program: 'api',
    when: 'half of the first user is there',
    environment: { ...somewhere, CHAT_PASSWORD: `${canary}-long-enough` },
    names: ['CHAT_USERNAME'],
  },
  {
    program: 'worker',
    when: 'there is nothing',
    environment: {},
    names: ['REDIS_URL', 'DATABASE_URL', ...providers],
  },
  {
    program: 'worker',
    when: 'its only provider has no credentials',
    environment: { ...somewhere, WORKER_PROVIDERS: 'openai', ANTHROPIC_API_KEY: canary },
    names: ['OPENAI_API_KEY'],
  },
  { program: 'migrate', when: 'there is nothing', environment: {}, names: ['DATABASE_URL'] },
];

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

describe('runProgram', () => {
  it.each(cases)('ends $program within two seconds when $when, with names and no value', async (row) => {
    const { result, lagMs } = await withLag(async () => {
      const startedAt = performance.now();
      const ran: Ran = await quillgate([row.program], row.environment);
      return { ...ran, tookMs: performance.now() - startedAt };
    });
    const { code, stdout, stderr, tookMs } = result;
    expect(code).toBe(1);
    // A machine that is busy takes as long to start a program that has nothing to do.
    const idle = await timed(() => quillgate(['--version'], {}));
    expect(tookMs).toBeLessThan(Math.max(2000 + lagMs, 3 * idle));
    expect(stdout).toBe('');
    for (const name of row.names) expect(stderr).toMatch(new RegExp(`\\b${name}\\b`));
    expect(stderr).not.toContain('canary');
  });
});
