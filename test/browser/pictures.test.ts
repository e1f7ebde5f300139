import { resolve } from 'node:path';
import type { Page, Route } from 'playwright-core';
import { describe, it } from 'vitest';
import { daysBetween } from '../../console/views/usage.tsx';
import type { Usage, UsageRow } from '../../shared/contracts/ledger.ts';
import { visit, writePicture, writesPictures } from './support/browser.js';
import { findChromium } from './support/chromium.js';
import { openView, useConsole } from './support/console.js';

const gate = 'sim-gate-0@picture';

/** `PICTURES=1 npx vitest run --project=browser pictures` writes those of the docs; the same chats each time. */
describe.skipIf(!writesPictures || findChromium() === undefined)('the pictures of the docs', () => {
  const prices = resolve('dev/simulator/prices.json');
  const variables = { PRICES_FILE: prices, OPENAI_CONCURRENCY: '4', CHAT_TIMEOUT_MS: '300000' };
  const opened = useConsole({ workers: 1, isPlayed: true, variables });

  const ask = (token: string, model: string, headers = {}) =>
    opened.deployment.chat({
      path: '/v1/chat/completions',
      provider: model.split('/')[0] ?? '',
      headers: { Authorization: `Bearer ${token}`, 'X-Session-Id': 'nightly-report', ...headers },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Say hello in three languages.' }] }),
    });

  it('shows a failing pool, one that waits, and what was asked and spent', async () => {
    const { page, context } = await visit(opened.browser);
    await page.setViewportSize({ width: 1280, height: 800 });
    const show = (view: string) => openView(page, opened.deployment.url, view);
    await show('pools');
    const [anna = '', ben = ''] = await page.evaluate(makeTokens, ['anna', 'ben']);
    for (let n = 0; n < 4; n += 1)
      for (const provider of ['openai', 'anthropic', 'vertexai'])
        await ask(n % 2 ? anna : ben, `${provider}/sim-stream-20-20`);
    for (let n = 0; n < 12; n += 1) await ask(anna, 'bedrock/sim-status-503');
    await ask(ben, 'openai/sim-status-400');
    const fallen = await ask(anna, 'bedrock/sim-status-503', { 'X-LLM-Fallback': 'anthropic/sim-echo' });
    const held = Array.from({ length: 10 }, (_, n) => ask(n % 3 ? anna : ben, `openai/${gate}`));
    try {
      await page
        .getByText(/^failing/)
        .first()
        .waitFor();
      await page.getByText('4 of 4', { exact: true }).waitFor();
      await page.getByRole('link', { name: /^6, oldest/ }).waitFor();
      await page.getByRole('region', { name: 'Table of failed requests' }).getByRole('row').nth(10).waitFor();
      await writePicture(page, 'pools');
      await show('pools/openai');
      await page.locator('canvas').nth(4).waitFor();
      await writePicture(page, 'pool');
      await show('pools/openai?jobs=waiting');
      await page.getByRole('region', { name: 'Table of jobs' }).getByRole('row').nth(6).waitFor();
      await writePicture(page, 'jobs');
      await show(`requests/${fallen.headers.get('x-request-id')}`);
      await page.getByRole('region', { name: 'Table of calls' }).waitFor();
      await writePicture(page, 'request');
      await writeLedger(page, '');
      const phone = await visit(opened.browser, { width: 390, colorScheme: 'dark' });
      await writeLedger(phone.page, '-390-dark');
      await phone.context.close();
    } finally {
      opened.deployment.simulator.open(gate);
      await Promise.all(held);
      await context.close();
    }
  });

  /** The requests, and the usage of a month, which no test can wait for. */
  async function writeLedger(page: Page, look: string): Promise<void> {
    await openView(page, opened.deployment.url, 'requests');
    await page.getByRole('region', { name: 'Table of requests' }).getByRole('row').nth(9).waitFor();
    await writePicture(page, `requests${look}`);
    await page.route('**/admin/usage?*', answerUsage);
    await openView(page, opened.deployment.url, 'usage?by=user&and=model');
    await page.getByRole('region', { name: 'Table of usage' }).waitFor();
    await writePicture(page, `usage${look}`);
  }
});

/** Runs in the page, whose session may make tokens. */
async function makeTokens(owners: readonly string[]): Promise<string[]> {
  const tokens: string[] = [];
  for (const owner of owners) {
    const body = JSON.stringify({ owner, scopes: ['chat'], name: 'nightly' });
    const headers = { 'Content-Type': 'application/json' };
    const answer = await fetch('/admin/tokens', { method: 'POST', headers, body });
    tokens.push(((await answer.json()) as { token: string }).token);
  }
  return tokens;
}

const users = ['anna', 'ben', 'carla'];
const models = ['gpt-6.1', 'claude-haiku-5-5', 'gemini-4-argon'];

async function answerUsage(route: Route): Promise<void> {
  const asked = new URL(route.request().url()).searchParams;
  const [from = '', to = ''] = [asked.get('from'), asked.get('to')].map(String);
  const rows: UsageRow[] =
    asked.get('by') === 'day'
      ? daysBetween(from, to).map((day, n) => ({ day, ...sumOf(400 + 37 * (n % 7), 0) }))
      : users.flatMap((user, n) =>
          models.map((model, m) => ({ user, userId: user, model, ...sumOf(1900 - 500 * n - 90 * m, m) })),
        );
  const usage: Usage = {
    ...{ from, to, rows, total: sumOf(14_500, 31), since: `${from}T06:00:00.000Z` },
    unknownModels: [],
  };
  await route.fulfill({ json: usage });
}

function sumOf(calls: number, estimated: number) {
  const tokens = { input: 900 * calls, cached: 600 * calls, output: 120 * calls, thinking: 40 * calls };
  const failed = Math.round(calls / 90);
  return {
    ...{ calls, failed, estimated, unpriced: 0, lost: 0, cost: 0.0031 * calls },
    tokens: { ...tokens, written: 0, writtenFor1h: 0 },
  };
}
