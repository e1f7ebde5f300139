import fc from 'fast-check';
import { createTokenStore } from '../../../db/access/tokens.js';
import { openDatabase } from '../../../db/database/client.js';
import { digestOf, makeAccessToken } from '../../../shared/access-token.js';
import type { Post, Scope } from '../../../shared/contract.js';
import { authorization, blogToken, type Deployment, startDeployment } from '../../support/deployment.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { floodedAddress } from './credentials.js';
import { type OpenApiDocument, readDocument } from './document.js';
import { numberedChats, numberedPosts } from './plan.js';
import { firstPost } from './post-requests.js';

/** A running server with posts and tokens for the plans to name. */
export interface World {
  readonly deployment: Deployment;
  readonly document: OpenApiDocument;
  readonly operations: ReturnType<typeof readDocument>;
  /** Puts in what the names in a plan's text stand for. */
  resolve(text: string): string;
  /** Sets what a name stands for from now on. */
  name(name: string, value: string): void;
  /** Lets so many logins fail from `floodedAddress` that the next one has to wait. */
  flood(): Promise<void>;
  /** Makes a post for `«fresh»` when there are few left. */
  stockUp(): Promise<void>;
  /** Publishes one more post, so that lists and feeds change. */
  publish(): Promise<void>;
  /** Learns from an answer what a post is now; one that is very long is deleted or cut, so that lists stay short. */
  note(written: WrittenPost, facts: { created: boolean }): Promise<void>;
  stop(): Promise<void>;
}

export interface WrittenPost {
  post: Post;
  etag: string;
}

const longest = 20_000;
const minStock = 16;
const tooManyRequests = 429;

/** Starts everything and writes the first posts, which the seed decides. */
export async function openWorld(seed: number): Promise<World> {
  // Failed logins are counted by address: a request that says where it comes from is believed.
  const variables = { TRUSTED_PROXIES: 'loopback', BLOG_READS_PER_SECOND: '0' };
  const deployment = await startDeployment({ variables });
  const names = new Map(Object.entries(await makeCredentials(deployment.stores.DATABASE_URL ?? '')));
  const samples = fc.sample(firstPost, { seed, numRuns: 2 * numberedPosts });
  const numbers = await writeFirstPosts(deployment, { names, samples });
  await keepChats(deployment, names);
  const document = (await (await fetch(`${deployment.url}/openapi.json`)).json()) as OpenApiDocument;
  const fresh: string[] = [];
  let published = 0;
  const lookUp = (key: string) => (key === 'fresh' ? fresh.pop() : names.get(key)) ?? '';
  return {
    deployment,
    document,
    operations: readDocument(document),
    resolve: (text) => text.replaceAll(/«([^»]+)»/g, (_, key: string) => lookUp(key.toLowerCase())),
    name: (name, value) => names.set(name, value),
    flood: async () => {
      const headers = { Authorization: 'Bearer wrong', 'X-Forwarded-For': floodedAddress };
      const login = async () => (await deployment.blog('/blogs', { headers })).status;
      while ((await login()) !== tooManyRequests);
    },
    stockUp: async () => {
      if (fresh.length >= minStock) return;
      const { post } = await create(deployment, { content: 'Fresh.' });
      fresh.push(post.id);
    },
    publish: async () => void (await create(deployment, samples[published++ % samples.length] ?? {})),
    note: async ({ post, etag }, { created }) => {
      const number = numbers.get(post.id);
      if (number !== undefined) names.set(`etag ${number}`, etag);
      if (post.content.length >= longest) await shorten(deployment, post, { created });
      else if (created) fresh.push(post.id);
    },
    stop: async () => {
      await deployment.stop();
    },
  };
}

/** Some that were answered, and some that failed. */
async function keepChats(deployment: Deployment, names: Map<string, string>): Promise<void> {
  for (let number = 0; number < numberedChats; number++) {
    const model = number % 3 === 1 ? 'sim-status-400' : 'sim-echo';
    const { body } = await deployment.chat({ model, headers: { Prefer: 'respond-async' } });
    names.set(`chat ${number}`, String(body.id));
  }
}

async function create(deployment: Deployment, json: object): Promise<WrittenPost> {
  const response = await deployment.blog('/blogs', { json });
  if (response.status !== 201) throw new Error(`a post of the world was answered ${response.status}`);
  return { post: (await response.json()) as Post, etag: response.headers.get('etag') ?? '' };
}

interface FirstPosts {
  names: Map<string, string>;
  samples: object[];
}

/** The posts that have numbers, as many that are gone, and one that holds a slug. Gives the number of each id. */
async function writeFirstPosts(deployment: Deployment, { names, samples }: FirstPosts) {
  const numbers = new Map<string, number>();
  for (let number = 0; number < numberedPosts; number++) {
    const status = number % 5 === 1 ? 'draft' : 'published';
    const { post, etag } = await create(deployment, { ...samples[number], status });
    const gone = await create(deployment, samples[numberedPosts + number] ?? {});
    await deployment.blog(`/blogs/${gone.post.id}`, { method: 'DELETE' });
    numbers.set(post.id, number);
    names.set(`id ${number}`, post.id).set(`idu ${number}`, post.id.toUpperCase());
    names.set(`etag ${number}`, etag).set(`gone ${number}`, gone.post.id);
  }
  await create(deployment, { content: 'Holds a slug.', slug: 'taken' });
  const page = await deployment.blog('/blogs?limit=5&envelope=true');
  const { next } = (await page.json()) as { next: string };
  const back = Buffer.from(`newer.${Buffer.from(next, 'base64url')}`).toString('base64url');
  names.set('cursor', next).set('cursor back', back);
  return numbers;
}

const shorten = (deployment: Deployment, { id }: Post, { created }: { created: boolean }) =>
  created
    ? deployment.blog(`/blogs/${id}`, { method: 'DELETE' })
    : deployment.blog(`/blogs/${id}`, { method: 'PATCH', json: { content: 'Short again.' } });

/** A token of each kind, and the user's credentials, by the name that plans use. */
async function makeCredentials(url: string): Promise<Record<string, string>> {
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
    return {
      user: authorization.replace('Basic ', ''),
      writer: blogToken,
      stored: (await make(['blogs:write'])).secret,
      reader: (await make(['blogs:read'])).secret,
      chatter: (await make(['chat'])).secret,
      operator: (await make(['admin'])).secret,
      expired: (await make(['blogs:write'], new Date(0))).secret,
      revoked: revoked.secret,
    };
  } finally {
    await database.close();
  }
}
