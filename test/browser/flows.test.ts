import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { username } from '../support/deployment.js';
import { patience } from '../support/patience.js';
import { findFaults, looks, takePicture, type Visit, visit } from './support/browser.js';
import { findChromium } from './support/chromium.js';
import { admin, openView, useConsole } from './support/console.js';

/** A mark of this prompt; the simulator repeats it in its reply. */
const secretWord = 'zanzibar';

describe.skipIf(findChromium() === undefined)('what operators do in the console', () => {
  const opened = useConsole({ workers: 1, isPlayed: true });
  let visited: Visit;
  let page: Page;
  beforeAll(async () => {
    visited = await visit(opened.browser);
    page = visited.page;
  });

  const see = (view: string) => openView(page, opened.deployment.url, view);
  const rowOf = (text: string) => page.getByRole('row').filter({ hasText: text });
  /** Presses a button that asks once more. */
  const confirm = async (name: string) => {
    await page.getByRole('button', { name, exact: true }).click();
    await page.getByRole('group').getByRole('button', { name, exact: true }).click();
  };
  const chatStatus = async (username: string, secret: string) => {
    const credentials = Buffer.from(`${username}:${secret}`).toString('base64');
    const { status } = await opened.deployment.chat({ headers: { Authorization: `Basic ${credentials}` } });
    return status;
  };
  const modelsStatus = async (token: string) => {
    const headers = { Authorization: `Bearer ${token}` };
    return (await fetch(`${opened.deployment.url}/v1/models`, { headers })).status;
  };

  it('a user is added, given a new secret and removed -> each secret is shown once, and works until the next step', async () => {
    await see('users');
    await page.getByLabel('New user').fill('grace');
    await page.getByRole('button', { name: 'Add user' }).click();
    const first = await page.getByRole('region', { name: 'The secret of grace' }).locator('code').innerText();
    expect(await chatStatus('grace', first)).toBe(200);
    await page.getByRole('button', { name: 'Done' }).click();
    await rowOf('grace').waitFor();
    expect(await page.content()).not.toContain(first);
    await page.reload();
    await rowOf('grace').waitFor();
    expect(await page.content()).not.toContain(first);

    await confirm('New secret for grace');
    const notice = page.getByRole('region', { name: 'The new secret of grace' });
    const second = await notice.locator('code').innerText();
    expect([await chatStatus('grace', first), await chatStatus('grace', second)]).toEqual([401, 200]);
    await takePicture(page, 'users-secret');

    await confirm('Suspend grace');
    await rowOf('grace').getByText('suspended').waitFor();
    expect(await chatStatus('grace', second)).toBe(403);
    await confirm('Resume grace');
    await page.getByRole('button', { name: 'Suspend grace' }).waitFor();
    expect(await chatStatus('grace', second)).toBe(200);
    await confirm('Remove grace');
    await rowOf('grace').waitFor({ state: 'detached' });
    expect(await chatStatus('grace', second)).toBe(401);
  });

  it('a token is made and revoked -> it is shown once, and works until then', async () => {
    await see('tokens');
    await page.getByRole('button', { name: 'Make a token' }).click();
    const notice = page.getByRole('region', { name: `The token of ${admin.name} for chat` });
    const token = await notice.locator('code').innerText();
    expect(await modelsStatus(token)).toBe(200);
    await page.reload();
    await rowOf(admin.name).waitFor();
    expect(await page.content()).not.toContain(token);
    await confirm(`Revoke the token of ${admin.name} for chat`);
    await page.getByText(/revoked \d/).waitFor();
    expect(await modelsStatus(token)).toBe(401);
  });

  it('a chat of the playground -> is among the requests and in the usage, without its texts', async () => {
    await see('playground');
    await page.getByRole('textbox', { name: 'Text of message 1' }).fill(`Say ${secretWord}`);
    await page.getByLabel('Model').fill('sim-echo');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByText('Completed').waitFor();
    await page.getByText('Tokens written').waitFor();
    expect(await page.getByText(secretWord).count()).toBeGreaterThan(0);
    await see('requests');
    const user = page.getByRole('cell', { name: admin.name, exact: true });
    const row = rowOf('sim-echo').filter({ has: user });
    await row.getByText('ok', { exact: true }).waitFor();
    expect(await page.content()).not.toContain(secretWord);
    // Those of another provider are not wanted.
    await page.getByText('Filter', { exact: true }).click();
    await page.locator('select[name=provider]').selectOption('bedrock');
    await page.getByRole('button', { name: 'Show' }).click();
    await row.waitFor({ state: 'detached' });
    await see('usage');
    await page.getByLabel('By', { exact: true }).selectOption('user');
    await page.getByLabel('And by').selectOption('model');
    await page.getByRole('button', { name: 'Show' }).click();
    const sum = rowOf('sim-echo').filter({ hasText: admin.name });
    await sum.getByText(/\$/).waitFor();
    await sum.getByRole('link', { name: admin.name }).click();
    await row.waitFor();
  });

  it('a chat that the provider refuses -> its reason is shown, and its id opens all that is known of it', async () => {
    await see('playground');
    await page.locator('datalist option[value="sim-status-400"]').waitFor({ state: 'attached' });
    await page.getByLabel('Model').fill('sim-status-400');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByText(/openai answered HTTP 400 \S+/).waitFor();
    await page.getByRole('link', { name: 'Show the request' }).click();
    await page.getByText(/Failed at OpenAI sim-status-400: HTTP 400 /).waitFor();
    const id = page.url().slice(-36);
    await page.getByText(id).waitFor();
    const calls = page.getByRole('region', { name: 'Table of calls' }).locator('tbody tr');
    await calls.getByText('counted').waitFor();
    await takePicture(page, 'request');
    expect(await findFaults(page)).toEqual([]);
    for (const [entered, shown] of [
      ['nobody', page.getByRole('alert').filter({ hasText: /\S/ })],
      [id, calls.first()],
    ] as const) {
      await see('requests');
      await page.getByLabel('Request id', { exact: true }).fill(entered);
      await page.getByRole('button', { name: 'Show' }).click();
      await shown.waitFor();
    }
    // The browser complains about each answer that is an error: the chat's, and those to an id that is not known.
    for (const complaint of visited.complaints.splice(0)) expect(complaint).toMatch(/status of (500|404)/);
  });

  it('requests that have ended -> have rows of 32 pixels, on a phone of 72', async () => {
    for (const look of looks) {
      const { page: own, context } = await visit(opened.browser, look);
      await openView(own, opened.deployment.url, 'requests');
      const rows = own.getByRole('region', { name: 'Table of requests' }).locator('tbody tr');
      await rows.nth(1).waitFor();
      const heights = await rows.evaluateAll((all) => all.map((row) => row.getBoundingClientRect().height));
      expect(new Set(heights)).toEqual(new Set([look.width > 500 ? 32 : 72]));
      await takePicture(own, `requests-some-${look.width}-${look.colorScheme}`);
      expect(await findFaults(own, look)).toEqual([]);
      await context.close();
    }
  });

  it('a tool is offered -> its call is shown, and its result goes with the next request', async () => {
    await see('playground');
    await page.getByLabel('Model').fill('sim-tools');
    await page.getByText('Tool', { exact: true }).click();
    await page.getByLabel('Function').fill('weather');
    const parameters = page.getByLabel('Parameters, as a JSON Schema');
    await parameters.fill('[');
    await page.getByText('The parameters must be a JSON object.').waitFor();
    expect(await page.getByRole('button', { name: 'Send', exact: true }).isDisabled()).toBe(true);
    const properties = { city: { type: 'string', enum: ['Bonn'] } };
    await parameters.fill(JSON.stringify({ type: 'object', properties, required: ['city'] }));
    expect(await findFaults(page)).toEqual([]);
    await page.getByRole('button', { name: 'Send', exact: true }).click();
    const reply = page.getByRole('region', { name: 'Reply' });
    await reply.getByText('{"city":"Bonn"}').waitFor();
    await reply.getByText('tool_calls').waitFor();
    await reply.getByLabel('Result of call 1').fill(`Sunny, ${secretWord}`);
    expect(await findFaults(page)).toEqual([]);
    await takePicture(page, 'playground-call');
    await page.getByRole('button', { name: 'Send the result' }).click();
    await reply.getByText(secretWord).waitFor();
    await reply.getByText('Completed').waitFor();
    expect(await page.getByLabel('Sender of message 3').inputValue()).toBe('tool');
    await takePicture(page, 'playground-result');
    await see('requests');
    await rowOf('sim-tools').first().getByText('ok', { exact: true }).waitFor();
    expect(await page.content()).not.toContain(secretWord);
  });

  it('what a pool has done -> is drawn, and said as text', async () => {
    await see('pools/openai');
    const history = page.getByRole('region', { name: 'Last ten minutes' });
    await history
      .getByText(/^p95 \d.*at most/)
      .first()
      .waitFor();
    await history.locator('canvas').nth(4).waitFor();
    await takePicture(page, 'charts');
  });

  it('operators change settings -> the audit says who, what, and from which value to which', async () => {
    await see('pools/vertexai');
    await page.getByRole('heading', { name: 'Settings' }).click();
    const field = page.getByLabel('Jobs at once, exactly');
    await field.fill('31');
    await field.press('Enter');
    await page.getByText('at 1 of 1').waitFor();
    await see('audit');
    const row = rowOf('vertexai').filter({ hasText: 'set a pool' });
    await row.getByText(admin.name).waitFor();
    expect(await row.getByRole('listitem').innerText()).toMatch(/concurrency: not set → 31/);
    // Users and tokens of the tests before are in it too, their secrets are not.
    await rowOf('gave a new secret').filter({ hasText: 'grace' }).waitFor();
    await rowOf('revoked a token').waitFor();
  });

  it('a queue has jobs -> they are listed by their state, without their texts', async () => {
    const asked = { provider: 'anthropic', messages: [{ content: secretWord }] };
    const id = (await opened.deployment.chat(asked)).headers.get('x-request-id') ?? '';
    // A reply can arrive before the end of its job is stored.
    const listActive = async () => (await fetch('/admin/pools/anthropic/jobs')).json();
    await vi.waitFor(async () => expect((await page.evaluate(listActive)).data).toEqual([]), patience);
    await see('pools/anthropic');
    const jobs = page.getByRole('region', { name: 'Jobs' });
    await jobs.getByLabel('State').selectOption('completed');
    const row = jobs.locator('tbody tr').filter({ hasText: id.slice(0, 8) });
    await row.waitFor();
    const cells = await row.locator('td').allInnerTexts();
    const age = expect.stringMatching(/\d (s|min)$/);
    expect(cells).toEqual([id.slice(0, 8), username, expect.anything(), 'chat', age, '–', '–', '1', '']);
    await takePicture(page, 'pool-jobs');
    expect(await findFaults(page)).toEqual([]);
    expect(await page.content()).not.toContain(secretWord);
    await jobs.getByLabel('State').selectOption('waiting');
    await jobs.getByText('No job of this pool is waiting.').waitFor();
    expect(visited.complaints).toEqual([]);
  });

  it('a chat that runs is cancelled -> its caller is told, and its job is gone', async () => {
    const { deployment } = opened;
    const model = 'sim-gate-0@cancelled-in-the-console';
    const asked = deployment.chat({ provider: 'anthropic', model });
    await deployment.simulator.waitForCall((call) => call.model === model);
    await see('pools/anthropic');
    const jobs = page.getByRole('region', { name: 'Jobs' });
    const name = /^Cancel chat /;
    await jobs.getByLabel('State').selectOption('active');
    const suspend = jobs.getByRole('link', { name: `All of ${username}: suspend` });
    expect(await suspend.getAttribute('href')).toBe(`#/users?name=${username}`);
    await jobs.getByRole('button', { name }).click();
    await jobs.getByRole('group').getByRole('button', { name }).click();
    expect(await asked).toMatchObject({ status: 500, body: { detail: 'The chat was cancelled.' } });
    await jobs.getByText('No job of this pool is active.').waitFor();
    await see('audit');
    await rowOf('cancelled a chat').waitFor();
    expect(visited.complaints).toEqual([]);
  });
});
