import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { XmlDocument } from 'libxml2-wasm';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { NewToken } from '../../../shared/accounts.js';
import type { Post } from '../../../shared/contract.js';
import * as accounts from './account-requests.js';
import {
  followFleet,
  getFleet,
  getPoolSettings,
  getSamples,
  listJobs,
  listRequests,
  replacePoolSettings,
} from './admin-requests.js';
import { cancelChat, chat, getChat } from './chat-requests.js';
import { type Answer, type Client, type Header, openClient } from './client.js';
import { floodedAddress } from './credentials.js';
import { createChatCompletion, getModel, listModels } from './openai-requests.js';
import type { Plan, PlannedBody, SentPlan } from './plan.js';
import { createPost, deletePost, patchPost, replacePost } from './post-requests.js';
import { atomFeed, getPost, jsonFeed, listPosts } from './read-requests.js';
import { canaryMark, nameMark } from './texts.js';
import { judge } from './verdict.js';
import { openWorld, type World } from './world.js';

/** How many requests each operation gets (CI: 300), and what they are made from. */
const requests = Number(process.env.FUZZ_RUNS ?? 100);
const seed = Number(process.env.FUZZ_SEED ?? 20_261_121);
/** As in CI, which does not look for the simplest request that fails: that took minutes. */
const isLong = requests >= 300;
/** So many requests at once: more than may wait, one a second, for their turn to guess from the flooded address. */
const lanes = 32;

/** Of every operation, in an order that leaves something to read for those that read. */
export const plans = {
  createPost,
  listPosts,
  getPost,
  jsonFeed,
  atomFeed,
  replacePost,
  patchPost,
  deletePost,
  chat,
  getChat,
  cancelChat,
  createChatCompletion,
  listModels,
  getModel,
  getFleet,
  getPoolSettings,
  replacePoolSettings,
  listJobs,
  followFleet,
  listRequests,
  getSamples,
  // Before users are removed.
  ...{ createUser: accounts.createUser, resetSecret: accounts.resetSecret },
  ...accounts,
} satisfies Record<string, fc.Arbitrary<Plan>>;

export type OperationId = keyof typeof plans;

/** About half of them, by time. */
export const readsAndChats: readonly OperationId[] = [
  ...(['listPosts', 'getPost', 'jsonFeed', 'atomFeed', 'chat', 'getChat', 'createChatCompletion'] as const),
];

/** Documented, and no answer to the requests of these plans. */
const unmet: ReadonlySet<string> = new Set([
  ...['chat 404', 'getPost 308', 'listPosts 403', 'getPost 403', 'jsonFeed 403', 'atomFeed 403'],
  ...['getPost 400', 'jsonFeed 400', 'atomFeed 400', 'getChat 400', 'cancelChat 400', 'listModels 400'],
  ...['getModel 400', 'getFleet 400', 'getPoolSettings 400', 'resetSecret 400', 'removeUser 400'],
  'revokeToken 400',
]);

/** The statuses that a run has to meet; otherwise it has tested less than it seems. */
const expectedStatuses = (id: OperationId): number[] =>
  Object.keys(world.operations.get(id)?.responses ?? {})
    .filter((status) => status < '500' && !unmet.has(`${id} ${status}`))
    .map(Number);

let world: World;
let client: Client;

/** The tests of these operations. */
export function fuzz(ids: readonly OperationId[]): void {
  beforeAll(async () => {
    world = await openWorld(seed);
    client = openClient(world.deployment.api.port);
  });
  afterAll(async () => {
    client?.close();
    await world?.stop();
  });

  it.each(ids)('for %s gets an answer that the document describes', { timeout: 600_000 }, async (id) => {
    await world.flood();
    const met = new Map<number, number>();
    const guess = guessFromFlood(id);
    // The flood counts for a minute from its first request, which may end just now: then the guesses make the next one.
    while (!met.has(429)) met.set((await ask(id, guess)).status, 1);
    const runs = Array.from({ length: lanes }, (_, lane) =>
      fc.check(
        fc.asyncProperty(plans[id], async (plan) => {
          const { status } = await ask(id, plan);
          met.set(status, (met.get(status) ?? 0) + 1);
        }),
        { seed: seed + lane, numRuns: Math.ceil(requests / lanes), endOnFailure: isLong },
      ),
    );
    const failed = (await Promise.all(runs)).find((details) => details.failed);
    if (failed) throw new Error(`With FUZZ_SEED=${seed}: ${(failed.errorInstance as Error).message}`);
    expect(saidTooMuch()).toEqual([]);
    if (isLong) expect([...met.keys()]).toEqual(expect.arrayContaining(expectedStatuses(id)));
  });
}

/** A request that nothing is wrong with but that it guesses credentials, from where too many have. */
function guessFromFlood(id: OperationId): Plan {
  const plan = fc.sample(plans[id], { seed, numRuns: 1000 }).find(({ odd }) => odd === undefined);
  if (plan === undefined) throw new Error('every request of the sample is odd');
  const scheme = id.toLowerCase().includes('chat') ? 'Basic' : 'Bearer';
  const credentials: Header[] = [
    ['Authorization', `${scheme} d3Jvbmc6d3Jvbmc=`],
    ['X-Forwarded-For', floodedAddress],
  ];
  return { ...plan, credentials, odd: 'credentials' };
}

/** Sends the plan and judges the answer. */
async function ask(id: OperationId, plan: Plan): Promise<Answer> {
  const operation = world.operations.get(id);
  if (operation === undefined) throw new Error(`the document has no operation ${id}`);
  await prepare(id);
  const sent = resolvePlan(plan);
  const headers = [
    ...sent.credentials,
    ...(sent.contentType ?? []),
    ...(sent.own ?? []),
    ...(sent.others ?? []),
  ];
  const encoding: Header[] = sent.body?.compressed
    ? [['Content-Encoding', encodings[sent.body.compressed].name]]
    : [];
  const wire = {
    method: sent.method,
    path: sent.target,
    headers: [...encoding, ...headers],
    body: toBytes(sent.body),
  };
  try {
    const answer = await client.send(wire);
    judge(operation, sent, answer);
    await learn(id, sent, answer);
    return answer;
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${JSON.stringify(sent).slice(0, 3000)}`);
  }
}

let count = 0;
async function prepare(id: OperationId): Promise<void> {
  if (id === 'deletePost') await world.stockUp();
  if (id.endsWith('Feed') && count++ % 100 === 0) await world.publish();
}

function resolvePlan(plan: Plan): SentPlan {
  const resolved = (headers: readonly Header[] = []): Header[] =>
    headers.map(([name, value]) => [name, world.resolve(value)]);
  const path = world.resolve(plan.path);
  return {
    ...plan,
    credentials: resolved(plan.credentials),
    own: resolved(plan.own),
    target: plan.query === undefined ? path : `${path}?${world.resolve(plan.query)}`,
  };
}

const encodings = {
  gzip: { name: 'gzip', compress: gzipSync },
  deflate: { name: 'deflate', compress: deflateSync },
  br: { name: 'br', compress: brotliCompressSync },
};

function toBytes(body: PlannedBody | undefined): Buffer | undefined {
  if (body === undefined) return undefined;
  const bytes = Buffer.from(body.text, body.bytes);
  return body.compressed ? encodings[body.compressed].compress(bytes) : bytes;
}

/** Feeds that have been read, by their tags. */
const feedsRead = new Set<string>();

/** Tells the world what the answer to a plain request says of posts and feeds. */
async function learn(id: OperationId, sent: SentPlan, { status, headers, body }: Answer): Promise<void> {
  const { etag = '' } = headers;
  if (sent.odd || status > 201 || body === '') return;
  if (id.endsWith('Feed')) world.name(`tag ${sent.path}`, etag);
  if (id === 'createToken') world.name('token', (JSON.parse(body) as NewToken).info.id);
  if (id === 'atomFeed' && !feedsRead.has(etag)) {
    XmlDocument.fromString(body).dispose();
    feedsRead.add(etag);
  }
  if (!['createPost', 'replacePost', 'patchPost'].includes(id)) return;
  await world.note({ post: JSON.parse(body) as Post, etag }, { created: status === 201 });
}

/** Lines of the log with a text of the caller's, or with an unexpected failure. */
const saidTooMuch = (): string[] =>
  world.deployment
    .logs()
    .split('\n')
    .filter((line) => [canaryMark, nameMark, 'unexpected error'].some((mark) => line.includes(mark)));
