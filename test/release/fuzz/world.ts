import { createTokenStore } from '../../../db/access/tokens.js';
import { openDatabase } from '../../../db/database/client.js';
import type { NewToken } from '../../../shared/contracts/accounts.js';
import type { Post, Scope } from '../../../shared/contracts/contract.js';
import { digestOf, makeAccessToken } from '../../../shared/credential-forms.js';
import { authorization, blogToken, type Deployment, startDeployment } from '../../support/deployment.js';
import { profiles } from '../../support/profiles.js';
import { createRecordingLog } from '../../support/recording-log.js';
import type { Answer, Header } from './client.js';
import { numbered } from './known.js';
import type { Request, SentRequest } from './request.js';

/** A running server, and what the requests name of it. */
export interface World {
  readonly deployment: Deployment;
  /** Puts in what the names in a request stand for. */
  resolve(request: Request): SentRequest;
  /** Learns from the answer to a request with nothing wrong what can be named from now on. */
  learn(operationId: string, sent: SentRequest, answer: Answer): void;
}

/** Starts everything, and writes posts and chats. No limit refuses anything. */
export async function openWorld(): Promise<World> {
  const limits = { BLOG_READS_PER_SECOND: '0', MAX_COMPATIBLE_BODY_BYTES: '1048576' };
  const deployment = await startDeployment({ variables: { ...profiles.plain, ...limits } });
  const names = new Map([
    ...(await writePosts(deployment)),
    ...(await keepChats(deployment)),
    ...(await makeCredentials(deployment.stores.DATABASE_URL ?? '')),
  ]);
  const etags = new Map<string, string>();
  /** The records that exist until a request removes them. */
  const made = { spare: [] as string[], token: [] as string[] };
  const lookUp = (name: string): string => {
    if (name === 'spare' || name === 'token')
      return made[name].pop() ?? '00000000-0000-4000-8000-000000000000';
    const id = names.get(name.toLowerCase()) ?? '';
    return name.startsWith('POST ') ? id.toUpperCase() : id;
  };
  const fill = (text: string) => text.replaceAll(/«([^»]+)»/g, (_, name: string) => lookUp(name));
  let requests = 0;
  return {
    deployment,
    resolve: (request) => {
      const path = fill(request.path);
      const tag = etags.get(path.toLowerCase()) ?? '"none"';
      const filled = (headers: readonly Header[]) =>
        headers.map(([name, value]): Header => [name, fill(value.replaceAll('«etag»', tag))]);
      // An address of its own for each, so that no limit by address holds it back.
      const address = `10.${[16, 8, 0].map((bits) => (requests >> bits) & 255).join('.')}`;
      requests++;
      return {
        ...request,
        credentials: filled(request.credentials),
        own: filled(request.own),
        others: [...request.others, ['X-Forwarded-For', address]],
        target: request.query === undefined ? path : `${path}?${fill(request.query)}`,
      };
    },
    learn: (operationId, { target, method }, { headers, body }) => {
      if (headers.etag) etags.set(target.split('?')[0]?.toLowerCase() ?? '', headers.etag);
      if (method !== 'POST') return;
      if (operationId === 'createPost') made.spare.push((JSON.parse(body) as Post).id);
      if (operationId === 'createToken') made.token.push((JSON.parse(body) as NewToken).info.id);
    },
  };
}

/** The posts that have numbers, as many that are gone, and one that holds a slug. */
async function writePosts(deployment: Deployment): Promise<Map<string, string>> {
  const create = async (json: object) => {
    const response = await deployment.blog('/blogs', { json });
    if (response.status !== 201) throw new Error(`a post of the world was answered ${response.status}`);
    return ((await response.json()) as Post).id;
  };
  const names = new Map<string, string>();
  for (let n = 0; n < numbered; n++) {
    names.set(
      `post ${n}`,
      await create({ content: `Post ${n}.`, status: n % 5 === 1 ? 'draft' : 'published' }),
    );
    const gone = await create({ content: 'Gone.' });
    await deployment.blog(`/blogs/${gone}`, { method: 'DELETE' });
    names.set(`gone ${n}`, gone);
  }
  await create({ content: 'Holds a slug.', slug: 'taken' });
  const page = await deployment.blog('/blogs?limit=5&envelope=true');
  const { next } = (await page.json()) as { next: string };
  const back = Buffer.from(`newer.${Buffer.from(next, 'base64url')}`).toString('base64url');
  return names.set('cursor', next).set('cursor back', back);
}

/** Some that were answered, and some that failed. */
async function keepChats(deployment: Deployment): Promise<Map<string, string>> {
  const names = new Map<string, string>();
  for (let n = 0; n < numbered; n++) {
    const model = n % 3 === 1 ? 'sim-status-400' : 'sim-echo';
    const { body } = await deployment.chat({ model, headers: { Prefer: 'respond-async' } });
    names.set(`chat ${n}`, String(body.id));
  }
  return names;
}

/** A token of each kind, and the user's credentials, by the name that requests use. */
async function makeCredentials(url: string): Promise<[name: string, secret: string][]> {
  const database = openDatabase({ url, poolSize: 1, log: createRecordingLog().log });
  const tokens = createTokenStore(database);
  const make = async (scopes: Scope[], expiresAt?: Date) => {
    const secret = makeAccessToken();
    const { id } = await tokens.create({ owner: 'owner', scopes, expiresAt, secretHash: digestOf(secret) });
    return { id, secret };
  };
  try {
    const revoked = await make(['blogs:write']);
    await tokens.revoke(revoked.id);
    return [
      ['user', authorization.replace('Basic ', '')],
      ['writer', blogToken],
      ['stored', (await make(['blogs:write'])).secret],
      ['reader', (await make(['blogs:read'])).secret],
      ['chatter', (await make(['chat'])).secret],
      ['operator', (await make(['admin'])).secret],
      ['expired', (await make(['blogs:write'], new Date(0))).secret],
      ['revoked', revoked.secret],
    ];
  } finally {
    await database.close();
  }
}
