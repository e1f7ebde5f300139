import pg from 'pg';
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { queueName } from '../../shared/protocol/messages.js';
import { startPruner } from '../../shared/queue/pruner.js';
import { authorization, startDeployment } from '../support/deployment.js';
import { openStoreOf } from '../support/opened-store.js';
import { patience } from '../support/patience.js';
import { profiles } from '../support/profiles.js';
import { createRecordingLog } from '../support/recording-log.js';

const deployment = await startDeployment({
  variables: { ...profiles.short, WORKER_PROVIDERS: 'openai,anthropic' },
});
afterAll(deployment.stop);
const store = await openStoreOf(deployment.stores);
afterAll(() => store.close());
beforeEach(async () => void (await deployment.restore()));

/** Names of the tables of the queue's store that contain this text. */
async function placesOf(text: string): Promise<string[]> {
  const client = new pg.Client({ connectionString: deployment.stores.DATABASE_URL });
  await client.connect();
  try {
    const { rows } = await client.query<{ name: string }>(`
      select format('%I.%I', table_schema, table_name) as name from information_schema.tables
      where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema') order by 1`);
    const found: string[] = [];
    for (const { name } of rows) {
      const query = `select from ${name} as it where strpos(it::text, $1) > 0 limit 1`;
      if ((await client.query(query, [text])).rowCount !== 0) found.push(name);
    }
    return found;
  } finally {
    await client.end();
  }
}
const eventually = (check: () => Promise<void>) => vi.waitFor(check, { ...patience, interval: 200 });
const forgotten = (text: string) => eventually(async () => expect(await placesOf(text)).toEqual([]));

/** Prunes beside the programs until nothing has this text, as if the times of jobs were over. */
async function forgottenWith(text: string, times: { keptMs: number } | { marginMs: number }): Promise<void> {
  const { log } = createRecordingLog();
  const pruner = startPruner({ store, maxMs: 0, log }, { everyMs: 50, ...times });
  await forgotten(text).finally(() => pruner.stop());
}

const killWorker = async () => {
  const [worker] = deployment.workers;
  process.kill(worker?.pid ?? 0, 'SIGKILL');
  await worker?.exitCode;
};
const [failing, long] = ['sim-status-400', 'x'.repeat(20_000)];

describe('what a chat leaves in the store', () => {
  it('its time is over → no byte of prompt or answer', async () => {
    const canary = 'canary-of-an-answered-chat';
    const messages = [{ content: canary }];
    const { body } = await deployment.chat({ model: 'sim-verbatim', messages });
    expect(body.response).toBe(canary);
    expect((await deployment.chat({ model: failing, messages })).status).toBe(500);
    // The programs' own pruners may have been at the events already.
    expect(await placesOf(canary)).not.toEqual([]);
    await forgottenWith(canary, { keptMs: 0 });
  });

  it('has a long conversation or tool → none of it for the minute that the record of an ended job is kept', async () => {
    const messages = [{ content: `canary-of-a-long-conversation ${long}` }];
    expect((await deployment.chat({ model: failing, messages })).status).toBe(500);
    const tool = { name: 'look', description: `canary-of-a-long-tool ${long}` };
    const { status } = await fetch(`${deployment.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { Authorization: authorization, 'Content-Type': 'application/json' },
      body: JSON.stringify({
        ...{ model: `openai/${failing}`, messages: [{ role: 'user', content: 'Hello' }] },
        tools: [{ type: 'function', function: tool }],
      }),
    });
    expect(status).toBe(400);
    for (const canary of ['canary-of-a-long-conversation', 'canary-of-a-long-tool']) await forgotten(canary);
  });

  it('has waited for a day, and no worker lives → an API process removes it', async () => {
    const turns = [{ role: 'user', content: 'canary-of-an-old-chat' }];
    await killWorker();
    const queue = store.createQueue(queueName('bedrock'));
    await queue.add('chat', { v: 1, turns }, { jobId: 'old', timestamp: Date.now() - 86_400_000 });
    await queue.close();
    await forgotten('canary-of-an-old-chat');
  });

  it('was never taken, could not be read, or died with its worker → nothing after its deadline', async () => {
    const canary = 'canary-of-an-unanswered-chat';
    const messages = [{ content: canary }];
    const headers = { Prefer: 'wait=5' };
    // Long enough for a busy machine to call the provider.
    const abandoned = deployment.chat({
      model: 'sim-hang@abandoned',
      messages,
      headers: { Prefer: 'wait=20' },
    });
    const called = deployment.simulator.waitForCall(({ model }) => model === 'sim-hang@abandoned');
    const early = await Promise.race([called.then(() => 'called'), abandoned.then(({ body }) => body.code)]);
    expect(early).toBe('called');
    const ofNewer = store.createQueue(queueName('openai'));
    await ofNewer.add('chat', { v: 5, turns: canary }, { jobId: 'newer' });
    await vi.waitFor(async () => expect(await ofNewer.getJobState('newer')).toBe('delayed'), patience);
    await ofNewer.close();
    await killWorker();
    const untaken = [headers, { Prefer: 'respond-async' }].map((sent) =>
      deployment.chat({ provider: 'anthropic', messages, headers: sent }),
    );
    const replies = await Promise.all([abandoned, ...untaken]);
    expect(replies.map(({ status }) => status)).toEqual([500, 500, 202]);
    const queue = store.createQueue(queueName('anthropic'));
    expect(await queue.getJobCounts('waiting', 'prioritized')).toEqual({ waiting: 1, prioritized: 1 });
    await queue.close();
    await forgottenWith(canary, { marginMs: 0 });
  });
});
