import type { Page } from 'playwright-core';
import { type Deployment, startDeployment } from '../../../support/deployment.js';
import { runServer } from '../../../support/postgres-server.js';
import { openWireTo, type Wire } from '../../../support/wire.js';

/** Who may sign in. */
export const admin = { name: 'ada', secret: 'canary-of-the-console-secret-27' };

/** A deployment whose PostgreSQL, where the queue lives too, can be cut off. */
export interface ConsoleDeployment {
  readonly deployment: Deployment;
  readonly wire: Wire;
  stop(): Promise<void>;
}

export async function startConsole({ workers = 2 } = {}): Promise<ConsoleDeployment> {
  const wire = await openWireTo(runServer() ?? '');
  const deployment = await startDeployment({
    store: { kind: 'postgres', url: wire.url, databaseUrl: wire.url },
    workers,
    variables: { ADMIN_USERNAME: admin.name, ADMIN_PASSWORD: admin.secret, CHAT_TIMEOUT_MS: '30000' },
  });
  return {
    deployment,
    wire,
    stop: async () => {
      await deployment.stop();
      await wire.close();
    },
  };
}

/** Opens a view, through the form if there is no session yet. */
export async function openView(page: Page, url: string, view = 'pools'): Promise<void> {
  await page.goto(`${url}/admin#/${view}`);
  const name = page.getByLabel('Name');
  await name.or(page.getByRole('navigation', { name: 'Console' })).waitFor();
  if (!(await name.isVisible())) return;
  await name.fill(admin.name);
  await page.getByLabel('Password').fill(admin.secret);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('navigation', { name: 'Console' }).waitFor();
}
