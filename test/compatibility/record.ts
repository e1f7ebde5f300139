import { writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { parseConfig } from '../../shared/config/config.js';
import { providerIds } from '../../shared/contracts/contract.js';
import { processHeartbeatSchema, queueName, topics } from '../../shared/protocol/messages.js';
import { chatKey, idempotencyIndexKey, resultKey } from '../../shared/protocol/stored-chat.js';
import type { QueueStore } from '../../shared/queue/queue-store.js';
import { openRelay, type Relay } from '../../shared/queue/relay.js';
import { openQueueStore } from '../../shared/queue/stores/open.js';
import { createLog } from '../../shared/runtime/log.js';
import { authorization, type Deployment, startDeployment, username } from '../support/deployment.js';
import { startPostgresServer } from '../support/postgres-server.js';

/**
 * Records what the programs of this checkout write to the queue's store and publish, for the next release to read:
 * `npm run build && npx node --import ./test/typescript.mjs test/compatibility/record.ts`. It is run when a release is
 * made, never on unreleased code.
 */

interface RecordedJob {
  data: unknown;
  /** The job's outcome as its worker stored it; absent while it has none. */
  returnvalue?: unknown;
}

const log = createLog({ program: 'record', level: 'warn' });
const idempotencyKey = 'recorded';
const turns = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: 'Hello \u0000 🎉' },
] as const;

const server = await startPostgresServer();
const deployment = await startDeployment({
  store: { kind: 'postgres', url: server.url, databaseUrl: server.url },
});
const store = openQueueStore(parseConfig(deployment.stores, 'migrate'), log);
const relay = await openRelay(store, { name: 'recorder', log });
const published = await listenToAll(relay);
const keptIds = await converse(deployment);
const jobs = await readJobs(store);
const records = await readRecords(store, keptIds);
await Promise.all(deployment.workers.map((worker) => worker.stop({ graceMs: 5000 })));
while (!JSON.stringify(published).includes('"stopped"')) await delay(20);
await relay.close();
await store.close();
await deployment.stop();
await server.stop();

write('jobs', jobs);
write('messages', oneOfEachShape(published));
write('records', records);

/** Causes every kind of record and message; returns the ids of the stored chats. */
async function converse({ chat, simulator, url }: Deployment): Promise<string[]> {
  const messages = [...turns];
  const ask = (provider: string, model: string, headers: Record<string, string> = {}) =>
    chat({ provider, model, messages, headers });
  await chat({ provider: 'anthropic', messages });
  for (const model of ['sim-echo', 'sim-length', 'sim-blocked', 'sim-status-400']) await ask('openai', model);
  await ask('vertexai', 'sim-limit-1-1-recorded');
  await leave(deployment);
  const byKey = await ask('bedrock', 'sim-echo', { 'Idempotency-Key': idempotencyKey });
  const keyed = byKey.headers.get('content-location')?.split('/').at(-1) ?? '';
  const later = await ask('openai', 'sim-hang@async', { Prefer: 'respond-async' });
  await simulator.waitForCall(({ model }) => model === 'sim-hang@async');
  await fetch(`${url}/chat/${later.body.id}`, {
    method: 'DELETE',
    headers: { Authorization: authorization },
  });
  return [keyed, String(later.body.id)];
}

/** A caller who goes while the call is running. */
async function leave({ chat, simulator }: Deployment): Promise<void> {
  const going = new AbortController();
  const asked = chat({ model: 'sim-hang@left', messages: [...turns], signal: going.signal });
  const call = await simulator.waitForCall(({ model }) => model === 'sim-hang@left');
  going.abort();
  await asked.catch(() => undefined);
  await call.closed;
}

async function readJobs(from: QueueStore): Promise<RecordedJob[]> {
  const recorded: RecordedJob[] = [];
  for (const id of providerIds) {
    const queue = from.createQueue(queueName(id));
    for (const { data, returnvalue } of await queue.getJobs()) recorded.push({ data, returnvalue });
    await queue.close();
  }
  return recorded;
}

async function readRecords(from: QueueStore, ids: string[]): Promise<{ key: string; value: string }[]> {
  const keys = [
    ...ids.flatMap((id) => [chatKey(id), resultKey(id)]),
    idempotencyIndexKey(username, idempotencyKey),
  ];
  const found = await Promise.all(keys.map(async (key) => ({ key, value: await from.records.read(key) })));
  return found.flatMap(({ key, value }) => (value === undefined ? [] : [{ key, value }]));
}

/** Heartbeats come every second and say the same. */
function oneOfEachShape(all: PublishedMessage[]): PublishedMessage[] {
  const shapeOf = ({ topic, message }: PublishedMessage) =>
    topic === topics.processes
      ? JSON.stringify(
          processHeartbeatSchema.parse(message).pools.map((pool) => [Object.keys(pool), pool.state]),
        )
      : JSON.stringify(message);
  return [...new Map(all.map((one) => [shapeOf(one), one])).values()];
}

function write(name: string, content: unknown): void {
  writeFileSync(`test/compatibility/recorded/${name}.json`, `${JSON.stringify(content, undefined, 2)}\n`);
}

/** A message as it was received, of any shape. */
interface PublishedMessage {
  readonly topic: string;
  readonly message: Record<string, unknown>;
}

/** Every message that is published from now on, of all topics. */
async function listenToAll(relay: Relay): Promise<PublishedMessage[]> {
  const heard: PublishedMessage[] = [];
  const ofProviders = providerIds.flatMap((id) => [topics.cancel(id), topics.limit(id)]);
  for (const topic of ['reply.*', topics.processes, ...ofProviders])
    await relay.subscribe(topic, z.looseObject({}), (message) => void heard.push({ topic, message }));
  return heard;
}
