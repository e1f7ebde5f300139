import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll } from 'vitest';
import { type Deployment, startDeployment } from '../../support/deployment.js';
import { openBrowser } from './browser.js';

/** Who may sign in. */
export const admin = { name: 'ada', secret: 'canary-of-the-console-secret-27' };

const noCredentials = { OPENAI_API_KEY: '', ANTHROPIC_API_KEY: '', AWS_REGION: '', GOOGLE_API_KEY: '' };

/** A browser and a deployment, for the tests of a file; `isPlayed` as `npm start` has it, without credentials. */
export function useConsole({ workers = 2, isPlayed = false, variables = {} } = {}) {
  const opened = {} as { browser: Browser; deployment: Deployment };
  beforeAll(async () => {
    opened.browser = await openBrowser();
    opened.deployment = await startDeployment({
      workers: isPlayed ? 0 : workers,
      variables: {
        ...{ ADMIN_USERNAME: admin.name, ADMIN_PASSWORD: admin.secret, CHAT_TIMEOUT_MS: '30000' },
        ...variables,
      },
    });
    const { simulator, startWorker } = opened.deployment;
    const own = { SIMULATOR_URL: simulator.url, ...noCredentials };
    if (isPlayed) await Promise.all(Array.from({ length: workers }, () => startWorker(own)));
  });
  afterAll(async () => {
    await opened.browser?.close();
    await opened.deployment?.stop();
  });
  return opened;
}

/** Opens a view, through the form if there is no session yet. */
export async function openView(page: Page, url: string, view = 'pools'): Promise<void> {
  await page.goto(`${url}/admin#/${view}`);
  const secret = page.getByLabel('Password');
  await secret.or(page.getByRole('navigation', { name: 'Console' })).waitFor();
  if (!(await secret.isVisible())) return;
  await page.getByLabel('Name').fill(admin.name);
  await secret.fill(admin.secret);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('navigation', { name: 'Console' }).waitFor();
}
