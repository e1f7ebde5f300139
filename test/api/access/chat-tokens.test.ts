import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { quillgate } from '../../support/command-line.js';
import {
  authorization,
  chatToken,
  type Deployment,
  type StartedApi,
  startDeployment,
} from '../../support/deployment.js';
import { bearer, completionOf } from '../../support/openai-requests.js';
import { patience } from '../../support/patience.js';

let deployment: Deployment;
let other: StartedApi;
beforeAll(async () => {
  deployment = await startDeployment({});
  other = await deployment.startApi();
});
afterAll(() => deployment.stop());

const listModels = (Authorization: string, url = deployment.url) =>
  fetch(`${url}/v1/models`, { headers: { Authorization } });
const statusOf = async (token: string, url = deployment.url) => (await listModels(bearer(token), url)).status;

const create = async (...args: string[]): Promise<{ id: string; token: string }> => {
  const environment = { DATABASE_URL: deployment.stores.DATABASE_URL ?? '' };
  const { code, stdout } = await quillgate(['tokens', 'create', '--json', ...args], environment);
  expect(code).toBe(0);
  return JSON.parse(stdout);
};

/** Asks rarely: thirty failures a minute slow all clients of an address. */
const until = (status: number, token: string, url: string) =>
  vi.waitFor(async () => expect(await statusOf(token, url)).toBe(status), { ...patience, interval: 300 });

describe('a token with the scope chat', () => {
  it('of the command line chats at every API process, and not any more once it is revoked', async () => {
    const { id, token } = await create('--scope', 'chat', '--owner', 'Zoë');
    for (const { url } of [deployment, other]) {
      await until(200, token, url);
      const reply = await completionOf(
        { url },
        { model: 'openai/sim-echo' },
        { Authorization: bearer(token) },
      );
      expect(reply).toMatchObject({ status: 200, finish: 'stop' });
    }
    const environment = { DATABASE_URL: deployment.stores.DATABASE_URL ?? '' };
    expect(await quillgate(['tokens', 'revoke', id], environment)).toMatchObject({ code: 0 });
    for (const { url } of [deployment, other]) await until(401, token, url);
  });

  it('is that of CHAT_TOKEN, and is good beside the credentials of users', async () => {
    expect(await statusOf(chatToken)).toBe(200);
    expect((await listModels(authorization)).status).toBe(200);
  });
});
