import { expect, vi } from 'vitest';
import { quillgate } from './command-line.js';
import type { Deployment } from './deployment.js';
import { patience } from './patience.js';

type Running = Pick<Deployment, 'url' | 'stores'>;

// Rarely: thirty failures a minute slow all clients of an address.
const rarely = { ...patience, interval: 300 };

/** Makes a user with the command line, and gives its `Authorization` once the API process knows of the user. */
export async function addUser({ url, stores }: Running, name: string): Promise<string> {
  const { stdout: secret } = await quillgate(['users', 'add', name], stores);
  const Authorization = `Basic ${Buffer.from(`${name}:${secret.trim()}`).toString('base64')}`;
  const isKnown = async () =>
    expect((await fetch(`${url}/v1/models`, { headers: { Authorization } })).status).toBe(200);
  await vi.waitFor(isKnown, rarely);
  return Authorization;
}

/** A token, and requests with it, by default for something that its scope opens at the deployment's API process. */
export interface TestToken {
  readonly id: string;
  readonly token: string;
  ask(path?: string, url?: string): Promise<Response>;
}

const opened = { admin: '/admin/pools', chat: '/v1/models' };

/** Creates the token with the command line; the API process knows it when this resolves. */
export async function createToken(
  { url, stores }: Running,
  scope: keyof typeof opened = 'admin',
): Promise<TestToken> {
  const environment = { DATABASE_URL: stores.DATABASE_URL ?? '', ADMIN_USERNAME: 'operator' };
  const { stdout } = await quillgate(
    ['tokens', 'create', '--owner', 'operator', '--scope', scope, '--json'],
    environment,
  );
  const { id, token }: { id: string; token: string } = JSON.parse(stdout);
  const ask = (path = opened[scope], at = url) =>
    fetch(`${at}${path}`, { headers: { Authorization: `Bearer ${token}` } });
  await vi.waitFor(async () => expect((await ask()).status).toBe(200), rarely);
  return { id, token, ask };
}
