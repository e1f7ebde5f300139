import { afterAll, describe, expect, it, vi } from 'vitest';
import type { AuditPage } from '../../shared/contracts/accounts.js';
import type { Chat } from '../../shared/contracts/contract.js';
import { addUser, createToken } from '../support/accounts.js';
import { quillgate } from '../support/command-line.js';
import { startDeployment, username } from '../support/deployment.js';
import { openStream, readStream } from '../support/event-streams.js';
import { bearer } from '../support/openai-requests.js';
import { patience } from '../support/patience.js';
import { profiles } from '../support/profiles.js';

/** One worker does one job of OpenAI at a time; operators use an API process that has none of the chats. */
const deployment = await startDeployment({ variables: profiles.narrow });
afterAll(deployment.stop);
const other = await deployment.startApi();
const operator = await createToken(deployment);
const ada = await addUser(deployment, 'ada');

/** Asks rarely: many refusals slow all clients of an address. */
const eventually = (check: () => Promise<void>) => vi.waitFor(check, { ...patience, interval: 300 });
const arrived = (model: string) => deployment.simulator.waitForCall((call) => call.model === model);
const callsOf = (model: string) => deployment.simulator.calls.list({ model });
const cancel = async (id: string, token = operator.token) => {
  const request = { method: 'DELETE', headers: { Authorization: bearer(token) } };
  return (await fetch(`${other.url}/admin/chat/${id}`, request)).status;
};
const jobsIn = async (state: string) => {
  const page = await operator.ask(`/admin/pools/openai/jobs?state=${state}`, other.url);
  return ((await page.json()) as { data: { id: string }[] }).data.map(({ id }) => id);
};
const oneIn = async (state: string): Promise<string> => {
  let ids: string[] = [];
  await eventually(async () => {
    ids = await jobsIn(state);
    expect(ids).toHaveLength(1);
  });
  return ids[0] ?? '';
};
const asAda = (model: string, headers: Record<string, string> = {}) =>
  deployment.chat({ model, headers: { Authorization: ada, ...headers } });
const read = async (location: string | null) =>
  (await (
    await fetch(`${deployment.url}${location}`, { headers: { Authorization: ada } })
  ).json()) as Partial<Chat>;
const cancelled = { status: 500, body: { code: 'internal', detail: 'The chat was cancelled.' } };

describe('an operator cancels a chat of another user, at an API process that does not have it', () => {
  it('that runs, and one of the environment that waits behind it → both callers are told, and their names audited', async () => {
    const [runs, waits] = ['sim-gate-0@cancelled-running', 'sim-gate-0@cancelled-waiting'];
    const running = asAda(runs);
    await arrived(runs);
    const waiting = deployment.chat({ model: waits });
    const [runningId, waitingId] = [await oneIn('active'), await oneIn('waiting')];
    expect(await cancel(waitingId, (await createToken(deployment, 'chat')).token)).toBe(403);
    expect(await cancel(waitingId)).toBe(204);
    expect(await waiting).toMatchObject(cancelled);
    expect(await cancel(runningId)).toBe(204);
    expect(await running).toMatchObject(cancelled);
    // The worker is free again, the store has neither job, and the second call was never made.
    expect((await asAda('sim-echo@after-cancels')).status).toBe(200);
    await eventually(async () =>
      expect([...(await jobsIn('active')), ...(await jobsIn('waiting'))]).toEqual([]),
    );
    expect([callsOf(runs).length, callsOf(waits).length]).toEqual([1, 0]);
    const audit = (await (await operator.ask('/admin/audit?action=chats.cancel')).json()) as AuditPage;
    expect(audit.data).toMatchObject([
      { actor: 'operator', targetId: runningId, targetName: 'ada' },
      { actor: 'operator', targetId: waitingId, targetName: username },
    ]);
  });
});

describe('a user', () => {
  const command = (...args: string[]) => quillgate(['users', ...args], deployment.stores);
  const statusAt = async (url: string) =>
    (await fetch(`${url}/v1/models`, { headers: { Authorization: ada } })).status;

  it('is suspended → requests, streams and stored chats end at every API process; resumed → all is as before', async () => {
    const [streamed, queued] = ['sim-gate-1@suspended-stream', 'sim-echo@suspended-queued'];
    const headers = { Authorization: ada };
    const streaming = readStream(await openStream({ url: other.url, model: streamed, headers }));
    await arrived(streamed);
    // It gets the worker when the stream ends, so that no chat of the suspended user runs before its cancellation.
    const holding = deployment.chat({ model: 'sim-gate-0@suspended-holding' });
    await oneIn('waiting');
    const location = (await asAda(queued, { Prefer: 'respond-async' })).headers.get('location');
    const waiting = asAda('sim-echo@suspended-waiting');
    await eventually(async () => expect(await jobsIn('waiting')).toHaveLength(3));
    expect(await command('suspend', 'ada')).toMatchObject({ code: 0, stdout: 'Suspended ada.\n' });
    expect((await streaming).end).toMatchObject({
      event: 'error',
      data: { code: 'suspended', status: 403 },
    });
    expect(await waiting).toMatchObject({ status: 403, body: { code: 'suspended' } });
    for (const { url } of [deployment, other])
      await eventually(async () => expect(await statusAt(url)).toBe(403));
    expect((await command('list')).stdout).toMatch(/^\S+ +ada .*\d{4}-\d\d-\d\d/m);

    expect(await command('resume', 'ada')).toMatchObject({ code: 0 });
    for (const { url } of [deployment, other])
      await eventually(async () => expect(await statusAt(url)).toBe(200));
    await eventually(async () => expect(await read(location)).toMatchObject({ status: 'cancelled' }));
    expect(await cancel(await oneIn('active'))).toBe(204);
    expect(await holding).toMatchObject(cancelled);
    expect((await asAda('sim-echo@resumed')).status).toBe(200);
    expect(callsOf(queued)).toEqual([]);
    const { stdout } = await quillgate(['audit'], deployment.stores);
    expect(stdout).toMatch(/users\.resume +\S+ +ada.*users\.suspend +\S+ +ada/s);
  });
});
