import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { migrateDatabase } from '../../db/database/migrate.js';
import type { Post } from '../../shared/contract.js';
import { quillgate } from '../support/command-line.js';
import { authorization, type Deployment, startDeployment } from '../support/deployment.js';
import { patience } from '../support/patience.js';
import { freshStore } from '../support/stores.js';

let deployment: Deployment;
/** Posts are for tokens alone; the credentials of a proxy do not count. */
let closed: Deployment;
beforeAll(async () => {
  [deployment, closed] = await Promise.all([
    startDeployment({}),
    startDeployment({ workers: 0, variables: { BLOG_READS: 'token' } }),
  ]);
});
afterAll(() => Promise.all([deployment.stop(), closed.stop()]));

const operate = async (args: string[], on = deployment) => {
  const ran = await quillgate(args, { DATABASE_URL: on.stores.DATABASE_URL ?? '' });
  expect(ran).toMatchObject({ code: 0 });
  return ran;
};
const addUser = async (name: string): Promise<string> => {
  const { secret } = JSON.parse((await operate(['users', 'add', name, '--json'])).stdout);
  return basic(`${name}:${secret}`);
};
interface MadeToken {
  id: string;
  token: string;
  expiresAt: string;
}
const createToken = async (args: string[] = [], on = deployment): Promise<MadeToken> =>
  JSON.parse((await operate(['tokens', 'create', '--json', ...args], on)).stdout);

const basic = (credentials: string): string => `Basic ${Buffer.from(credentials).toString('base64')}`;
const bearer = (token: string): string => `Bearer ${token}`;
const bearing = (token: string) => ({ headers: { Authorization: bearer(token) } });
const chatAs = async (Authorization: string) =>
  (await deployment.chat({ headers: { Authorization } })).status;
/** Asks rarely: thirty failures a minute slow all clients of an address. */
const untilKnown = (Authorization: string) =>
  vi.waitFor(async () => expect(await chatAs(Authorization)).toBe(200), { ...patience, interval: 300 });
const writeAs = async (token: string) =>
  (await deployment.blog('/blogs', { json: { content: 'x' }, ...bearing(token) })).status;

const keptChat = async (Authorization: string, id: unknown) =>
  (await fetch(`${deployment.url}/chat/${id}`, { headers: { Authorization } })).status;

describe('a name that is given again', () => {
  const keyed = { 'Idempotency-Key': 'the-same-key' };

  it('is another user, who sees nothing of the earlier one', async () => {
    const earlier = await addUser('again');
    await untilKnown(earlier);
    const kept = await deployment.chat({ headers: { Authorization: earlier, ...keyed } });
    expect(kept.status).toBe(200);
    const id = kept.headers.get('content-location')?.split('/').pop();
    expect(await keptChat(earlier, id)).toBe(200);
    const { token } = await createToken(['--owner', 'again']);
    const write = async (bearing: string, content: string) => {
      const headers = { Authorization: bearer(bearing), ...keyed };
      return (await (await deployment.blog('/blogs', { json: { content }, headers })).json()) as Post;
    };
    const post = await write(token, 'of the earlier one');
    expect(await write(token, 'of the earlier one')).toEqual(post);

    await operate(['users', 'remove', 'again']);
    const later = await addUser('again');
    await untilKnown(later);
    expect(await keptChat(later, id)).toBe(404);
    const own = await deployment.chat({ headers: { Authorization: later, ...keyed } });
    expect(own.status).toBe(200);
    expect(own.headers.get('idempotency-replayed')).toBeNull();
    const { token: another } = await createToken(['--owner', 'again']);
    const ownPost = await write(another, 'of the later one');
    expect(ownPost).toMatchObject({ content: 'of the later one' });
    expect(await write(another, 'of the later one')).toEqual(ownPost);
  });
});

describe('failed logins', () => {
  it('count as from one address, whatever is forwarded by somebody who is not trusted', async () => {
    const answers = await Promise.all(
      Array.from({ length: 32 }, (_, n) => {
        const headers = { Authorization: bearer('wrong'), 'X-Forwarded-For': `203.0.113.${n}` };
        return fetch(`${closed.url}/blogs`, { headers });
      }),
    );
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(2);
    expect((await closed.blog('/blogs')).status).toBe(200);
  });
});

describe('a user of the command line', () => {
  it('can chat at once, and not any more when removed, with all tokens', async () => {
    const [zoe, yan] = [await addUser('Zoë'), await addUser('Yan')];
    expect(await chatAs(zoe)).toBe(200);
    const { token } = await createToken(['--owner', 'Zoë']);
    expect(await writeAs(token)).toBe(201);
    await operate(['users', 'remove', 'Zoë']);
    expect(await chatAs(zoe)).toBe(401);
    expect(await writeAs(token)).toBe(401);
    expect(await chatAs(yan)).toBe(200);
    expect(await chatAs(authorization)).toBe(200);
  });
});

describe('a token of the command line', () => {
  it('writes posts in the name of its owner at once, and not any more when revoked', async () => {
    const { id, token } = await createToken(['--owner', 'Ünal']);
    const created = await deployment.blog('/blogs', { json: { content: 'x' }, ...bearing(token) });
    expect(created.status).toBe(201);
    expect(((await created.json()) as Post).author).toBe('Ünal');
    await operate(['tokens', 'revoke', id]);
    expect(await writeAs(token)).toBe(401);
  });
});

describe('BLOG_READS=token', () => {
  it('closes posts and feeds to those without a token, and the description says so', async () => {
    const { id } = (await (await closed.blog('/blogs', { json: { content: 'x' } })).json()) as Post;
    for (const path of ['/blogs', `/blogs/${id}`, '/feed.json', '/feed.xml']) {
      const refused = await fetch(`${closed.url}${path}`);
      expect(refused.status, path).toBe(401);
      expect(refused.headers.get('www-authenticate'), path).toBe('Bearer realm="blogs"');
      const read = await closed.blog(path);
      expect(read.status, path).toBe(200);
      expect(read.headers.get('cache-control'), path).toMatch(/private/);
    }
    const securityOf = async ({ url }: Deployment) => {
      const document = (await (await fetch(`${url}/openapi.json`)).json()) as {
        paths: Record<string, Record<string, { security: object[] }>>;
      };
      return document.paths['/blogs']?.get?.security;
    };
    expect(await securityOf(closed)).toEqual([{ bearer: [] }]);
    expect(await securityOf(deployment)).toEqual([{ bearer: [] }, {}]);
  });
});

describe('a server', () => {
  const fresh = async (): Promise<Record<string, string>> => {
    const url = deployment.stores.DATABASE_URL ?? '';
    const stores = await freshStore({ kind: 'postgres', url, databaseUrl: url });
    await migrateDatabase(stores.DATABASE_URL ?? '');
    return { ...stores, HOST: '127.0.0.1', PORT: '0' };
  };

  it('refuses to start when nobody could use it, and says what to do', async () => {
    const environment = await fresh();
    const { code, stderr } = await quillgate(['api'], environment);
    expect(code).toBe(1);
    const variables = ['CHAT_USERNAME', 'CHAT_PASSWORD', 'ADMIN_USERNAME', 'BLOG_TOKEN', 'CHAT_TOKEN'];
    for (const way of [...variables, 'quillgate users add']) expect(stderr).toContain(way);
    const made = JSON.parse((await quillgate(['tokens', 'create', '--json'], environment)).stdout);
    await quillgate(['tokens', 'revoke', made.id], environment);
    expect(await quillgate(['api'], environment)).toMatchObject({ code: 1, stderr });
  });
});
