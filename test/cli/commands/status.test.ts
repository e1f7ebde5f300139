import { describe, expect, it, onTestFinished } from 'vitest';
import { expectedProviders, printStatus } from '../../../cli/commands/status.js';
import { type Environment, parseConfig } from '../../../shared/config/config.js';
import { providerIds } from '../../../shared/contracts/contract.js';
import { plant } from '../../support/folders.js';
import { collectOutput } from '../output.js';

/** Nothing listens on port 1. */
const nowhere = { DATABASE_URL: 'postgres://secret:secret@127.0.0.1:1/x', REDIS_URL: 'redis://127.0.0.1:1' };

/** The command's output without a reachable store, and its exit code. */
async function statusOf(variables: Environment = {}, options: Parameters<typeof printStatus>[1] = {}) {
  const before = process.exitCode;
  onTestFinished(() => {
    process.exitCode = before;
  });
  const output = collectOutput();
  await printStatus({ ...nowhere, ...variables }, { ...options, listenMs: 0, reachMs: 50 });
  return { ...output, code: process.exitCode };
}

describe('expectedProviders', () => {
  it.each([
    [{}, undefined, ['openai', 'anthropic', 'bedrock', 'vertexai']],
    [{ WORKER_PROVIDERS: 'openai' }, undefined, ['openai']],
    [{ OPENAI_API_KEY: 'x', AWS_REGION: 'x' }, undefined, ['openai', 'bedrock']],
    [{ OPENAI_API_KEY: 'x', REAL_PROVIDERS: 'vertexai' }, undefined, ['openai', 'vertexai']],
    [{ OPENAI_API_KEY: 'x', WORKER_PROVIDERS: 'openai,bedrock' }, undefined, ['openai']],
    [{ SIMULATOR_URL: 'http://127.0.0.1:1', OPENAI_API_KEY: 'x' }, undefined, [...providerIds]],
    [{ OPENAI_API_KEY: 'x' }, 'vertexai, anthropic', ['anthropic', 'vertexai']],
  ])('%j, and %s given -> %j', (variables, given, expected) => {
    expect(expectedProviders(parseConfig(variables, 'command'), given)).toEqual(expected);
  });
});

describe('printStatus', () => {
  it('stores that cannot be reached -> says so, that it hears no worker, and ends with 1', async () => {
    const { stdout, stderr, code } = await statusOf();
    expect(stdout).toMatch(/^database {2}failing: .*$/m);
    expect(stdout).toMatch(/^queue {5}failing \(redis\): the store cannot be reached/m);
    expect(stdout).toMatch(/^vertexai +unknown /m);
    expect(stdout).not.toContain('secret');
    const all = 'openai, anthropic, bedrock, vertexai';
    expect(stderr).toBe(`Not served, of ${all}: ${all}.\n`);
    expect(code).toBe(1);
  });

  it('JSON -> the same', async () => {
    const { stdout, stderr } = await statusOf({ WORKER_PROVIDERS: 'openai' }, { json: true });
    expect(JSON.parse(stdout)).toMatchObject({
      database: { status: 'failing' },
      queue: { store: 'redis', status: 'failing' },
      providers: Array(4).fill({ state: 'unknown' }),
      expected: ['openai'],
      unserved: ['openai'],
    });
    expect(stderr).toBe('');
  });

  it('the queue in Redis, and no database -> does without, and says so', async () => {
    const { stdout } = await statusOf({ DATABASE_URL: undefined, DATA_DIR: '/nowhere' });
    expect(stdout).toMatch(/^database {2}not configured$/m);
  });

  it('unknown providers, or an environment without a store -> refused', async () => {
    await expect(statusOf({}, { providers: 'openai,canary' })).rejects.toThrow(
      '--providers must be a comma list of: openai, anthropic, bedrock, vertexai.',
    );
    const none = { DATABASE_URL: undefined, REDIS_URL: undefined, DATA_DIR: '/nowhere' };
    await expect(statusOf(none)).rejects.toThrow('Nothing runs here: run npm start');
    // As npm start leaves it behind.
    const DATA_DIR = plant({ 'database-url': nowhere.DATABASE_URL });
    await expect(statusOf({ ...none, DATA_DIR })).rejects.toThrow('Nothing runs here');
  });
});
