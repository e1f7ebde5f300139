import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { type ChatCall, type ChatReply, type Deployment, startDeployment } from '../support/deployment.js';

let deployment: Deployment;
beforeAll(async () => {
  deployment = await startDeployment({ store: inject('store'), variables: { CHAT_MAX_WAIT_S: '60' } });
});
afterAll(() => deployment.stop());

const wait = (seconds: number) => ({ Prefer: `wait=${seconds}` });
const chatAll = (calls: ChatCall[]): Promise<ChatReply[]> => Promise.all(calls.map(deployment.chat));

describe('a deadline that the caller named', () => {
  it('comes back in Preference-Applied with good answers and with problems', async () => {
    const replies = await chatAll([
      { headers: wait(5) },
      { headers: wait(60), model: 'sim-status-400' },
      { headers: wait(5), messages: [] },
      { headers: wait(1), model: 'sim-hang' },
    ]);
    expect(replies.map(({ status }) => status)).toEqual([200, 500, 400, 500]);
    expect(replies.map(({ headers }) => headers.get('preference-applied'))).toEqual([
      'wait=5',
      'wait=60',
      'wait=5',
      'wait=1',
    ]);
  });

  it('is refused above the bound that is configured', async () => {
    const [reply] = await chatAll([{ headers: wait(61) }]);
    expect(reply?.status).toBe(400);
    expect(reply?.body).toMatchObject({ code: 'invalid_request', errors: [{ pointer: 'Prefer' }] });
    expect(reply?.headers.get('preference-applied')).toBeNull();
  });
});
