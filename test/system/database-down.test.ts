import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { quillgate } from '../support/command-line.js';
import { type ChatReply, type Deployment, startDeployment } from '../support/deployment.js';
import { withLag } from '../support/lateness.js';
import type { StoreServer } from '../support/stores.js';
import { openWireTo, type Wire } from '../support/wire.js';

const store = inject('store');
const queueIsElsewhere = store.kind === 'redis';

let wire: Wire;
let deployment: Deployment;
/** Credentials of a user whom only the database knew. */
let known: string;
beforeAll(async () => {
  const opened = await openWireTo(store.databaseUrl);
  wire = opened;
  const behind: StoreServer = {
    ...store,
    url: queueIsElsewhere ? store.url : opened.url,
    databaseUrl: opened.url,
  };
  deployment = await startDeployment({ store: behind });
  const environment = { DATABASE_URL: deployment.stores.DATABASE_URL ?? '' };
  const { stdout } = await quillgate(['users', 'add', 'known'], environment);
  known = `Basic ${Buffer.from(`known:${stdout.trim()}`).toString('base64')}`;
});
afterAll(async () => {
  await deployment.stop();
  await wire.close();
});

/** What a request to the blog has met, and how long it took. */
async function ask(path: string, json?: unknown) {
  const startedAt = performance.now();
  const response = await deployment.blog(path, { json });
  const body = (await response.json()) as { code?: string };
  const retryAfter = response.headers.get('retry-after');
  return { status: response.status, code: body.code, retryAfter, tookMs: performance.now() - startedAt };
}

/** Chats one after another, at least twenty times, until the other work is done; gives the replies. */
async function chatDuring(work: Promise<unknown>): Promise<ChatReply[]> {
  const replies: ChatReply[] = [];
  let going = true;
  const done = work.finally(() => {
    going = false;
  });
  while (going || replies.length < 20)
    replies.push(await deployment.chat({ headers: { Authorization: known } }));
  await done;
  return replies;
}

const medianOf = (replies: ChatReply[]): number =>
  replies.map(({ tookMs }) => tookMs).sort((a, b) => a - b)[replies.length >> 1] ?? 0;

const untilWell = async () => {
  for (;;) {
    const [blog, chat, ready] = await Promise.all([
      ask('/blogs'),
      deployment.chat({}),
      fetch(`${deployment.url}/readyz`),
    ]);
    if (blog.status === 200 && chat.status === 200 && ready.status === 200) return;
  }
};

const outages = [
  { what: 'stopped', begin: () => wire.cut(), end: () => wire.mend() },
  { what: 'silent', begin: async () => wire.freeze(), end: async () => wire.thaw() },
];

describe.each(outages)('a database that is $what', ({ begin, end }) => {
  it('makes the blog answer 503 within four seconds, and is used again when it is back', async () => {
    expect((await ask('/blogs', { content: 'before' })).status).toBe(201);
    await begin();
    const { result: asked, lagMs } = await withLag(() =>
      Promise.all([
        ...Array.from({ length: 15 }, () => ask('/blogs')),
        ...Array.from({ length: 15 }, () => ask('/blogs', { content: 'meanwhile' })),
        ask('/feed.xml'),
      ]),
    );
    for (const { status, code, retryAfter, tookMs } of asked) {
      expect({ status, code }).toEqual({ status: 503, code: 'database_unavailable' });
      expect(Number(retryAfter)).toBeGreaterThan(0);
      expect(tookMs).toBeLessThan(4000 + lagMs);
    }
    expect((await fetch(`${deployment.url}/readyz`)).status).toBe(503);
    await end();
    await untilWell();
    expect((await ask('/blogs', { content: 'after' })).status).toBe(201);
  });

  it.runIf(queueIsElsewhere)('leaves chat as it is', async () => {
    const usual = medianOf(await chatDuring(ask('/blogs')));
    await begin();
    const replies = await chatDuring(ask('/blogs').then(({ status }) => expect(status).toBe(503)));
    await end();
    for (const { status } of replies) expect(status).toBe(200);
    // Whatever waits for the database waits for longer.
    expect(medianOf(replies)).toBeLessThan(3 * usual + 500);
    await untilWell();
  });
});
