import { expect } from 'vitest';
import { providerIds } from '../../shared/contract.js';
import { quillgate } from '../support/command-line.js';
import { timed } from './support/expectations.js';
import { fault } from './support/fault.js';

const canary = 'canary-of-what-a-caller-sent';
const failing = [
  'sim-status-400',
  'sim-status-401',
  'sim-status-500',
  'sim-html',
  'sim-truncated',
  'sim-echo',
];

fault(
  {
    id: 'S7',
    injected: 'canaries in prompts, secrets, tokens, headers and keys; every log line and metric there is',
    callsPerRequest: 2,
  },
  async (books) => {
    const { blog, logs, url } = await books.start({ variables: { LOG_LEVEL: 'trace' } });
    const basic = `Basic ${Buffer.from(`${canary}:${canary}`).toString('base64')}`;
    const replies = await Promise.all([
      ...providerIds.flatMap((provider) =>
        failing.map((model) => books.chat({ provider, model, messages: [{ content: canary }] })),
      ),
      books.chat({ headers: { Authorization: basic } }),
      books.chat({ body: `{"messages":[{"content":"${canary}` }),
      books.chat({ body: `{"messages":[{"role":"${canary}","${canary}":1}]}` }),
      books.chat({ headers: { 'X-LLM': canary } }),
      books.chat({ headers: { Prefer: `wait=${canary}` } }),
    ]);
    const wrongToken = await blog(`/blogs?tag=${canary}`, { headers: { Authorization: `Bearer ${canary}` } });
    const wrongBody = await blog('/blogs', { json: { content: 1, title: canary, [canary]: canary } });
    const wrongPath = await fetch(`${url}/${canary}?${canary}`, { headers: { 'X-Request-Id': canary } });
    const problems = replies.filter(({ status }) => status !== 200).map(({ body }) => JSON.stringify(body));
    expect(problems.length).toBeGreaterThan(20);
    for (const answer of [wrongToken, wrongBody, wrongPath]) problems.push(await answer.text());
    expect(problems.filter((text) => text.includes(canary))).toEqual([]);
    const metrics = await scrapeAll([
      url,
      ...books.deployment.workers.map(({ port }) => `http://127.0.0.1:${port}`),
    ]);
    expect(metrics).toContain('quillgate_chat_requests_total{provider="none",code="unknown_provider"} 1');
    expect(metrics).toContain(
      'quillgate_provider_calls_total{provider="openai",kind="first",code="provider_rejected"}',
    );
    await books.deployment.api.stop({ graceMs: 5000 });
    const lines = logs().split('\n');
    expect(lines.length).toBeGreaterThan(50);
    const encoded = [canary, basic.slice('Basic '.length)];
    const leaks = [...lines, ...metrics.split('\n')].filter((line) =>
      encoded.some((text) => line.includes(text)),
    );
    expect(leaks).toEqual([]);
    return `in none of ${problems.length} problems, ${lines.length} lines of logs at level trace, and no metric`;
  },
);

async function scrapeAll(urls: string[]): Promise<string> {
  const texts = urls.map(async (url) => (await fetch(`${url}/metrics`)).text());
  return (await Promise.all(texts)).join('\n');
}

const wrong = {
  PORT: canary,
  CHAT_BASE_URL: canary,
  DATABASE_URL: `postgres://user:${canary}@127.0.0.1/x?unknown=${canary}`,
  REDIS_URL: `https://:${canary}@127.0.0.1`,
  CHAT_PASSWORD: 'canary',
  ADMIN_PASSWORD: 'canary',
  BLOG_TOKEN: `${canary} with spaces and long enough`,
  CHAT_TOKEN: `${canary} with spaces, too`,
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
const database = { DATABASE_URL: `postgres://user:${canary}@127.0.0.1:1/x` };
const somebody = { CHAT_USERNAME: 'tester', CHAT_PASSWORD: 'a-secret-of-some-length' };
const misconfigured: [program: string, environment: Record<string, string>, named: string[]][] = [
  ...['api', 'worker', 'migrate', 'start'].map((program): [string, Record<string, string>, string[]] => [
    program,
    wrong,
    wrongNames,
  ]),
  ['api', {}, ['DATABASE_URL']],
  ['api', somebody, ['DATABASE_URL']],
  ['api', { ...database, CHAT_PASSWORD: `${canary}-long-enough` }, ['CHAT_USERNAME']],
  ['api', { ...database, ADMIN_PASSWORD: `${canary}-long-enough` }, ['ADMIN_USERNAME']],
  ['worker', {}, ['REDIS_URL', 'DATABASE_URL', ...providers]],
  ['worker', { ...database, WORKER_PROVIDERS: 'openai', ANTHROPIC_API_KEY: canary }, ['OPENAI_API_KEY']],
  ['migrate', {}, ['DATABASE_URL']],
];

fault({ id: 'S8', timed: true, injected: 'configuration that is missing or invalid' }, async () => {
  let slowestMs = 0;
  for (const [program, environment, names] of misconfigured) {
    const running = quillgate([program], environment);
    slowestMs = Math.max(slowestMs, await timed(running));
    const { code, stdout, stderr } = await running;
    expect(code, program).not.toBe(0);
    for (const name of names) expect(stderr).toMatch(new RegExp(`\\b${name}\\b`));
    expect(stdout).toBe('');
    expect(stderr).not.toContain('canary');
  }
  expect(slowestMs).toBeLessThan(2000);
  return `${misconfigured.length} × exit ≠ 0 within ${slowestMs} ms, the variable named, its value not shown`;
});
