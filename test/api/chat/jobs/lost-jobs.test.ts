import { beforeEach, describe, expect, it } from 'vitest';
import { LostJobs } from '../../../../api/chat/jobs/lost-jobs.js';
import { type PendingJob, PendingReplies, type Wait } from '../../../../api/chat/jobs/pending-replies.js';
import { chatKey, encodeStoredChat, type StoredChat } from '../../../../shared/protocol/stored-chat.js';
import { createRecordingLog } from '../../../support/recording-log.js';

const { log } = createRecordingLog();
const job: PendingJob = {
  ...{ jobId: 'chat', provider: 'openai', isStored: true },
  fallback: [{ provider: 'bedrock' }],
};
const chat: StoredChat = {
  ...{ v: 1, id: 'chat', owner: 'me', ownerId: 'me', provider: 'openai', requestHash: 'h' },
  ...{ createdAt: 0, deadline: 0, keptUntil: 0 },
};

let records: Map<string, string>;
let pendingReplies: PendingReplies;
let lostJobs: LostJobs;
let isPassingOn: boolean;
let added: number;
let wait: Wait;

beforeEach(() => {
  records = new Map();
  pendingReplies = new PendingReplies();
  const readAll = async (keys: readonly string[]) => keys.map((key) => records.get(key));
  isPassingOn = false;
  lostJobs = new LostJobs({
    ...{ records: { readAll }, pendingReplies, log },
    isPassingOn: () => isPassingOn,
  });
  added = 0;
  wait = begin(job);
  return () => wait.leave();
});

function begin(pending: PendingJob): Wait {
  const begun = pendingReplies.wait(pending, Date.now() + 60_000);
  begun.onLost(() => {
    added += 1;
  });
  return begun;
}
const record = (own: Partial<StoredChat> = {}) =>
  records.set(chatKey('chat'), encodeStoredChat({ ...chat, ...own }));

describe('LostJobs', () => {
  it('has a job added again that nobody can have passed on', async () => {
    for (const own of [{ isStored: false }, { fallback: [] }]) {
      wait.leave();
      wait = begin({ ...job, ...own });
      await lostJobs.report([{ ...job, ...own }], Date.now());
    }
    expect(added).toBe(2);
  });

  it('leaves a job alone that is being passed on', async () => {
    isPassingOn = true;
    wait.leave();
    wait = begin({ ...job, isStored: false });
    await lostJobs.report([{ ...job, isStored: false }], Date.now());
    expect(added).toBe(0);
  });

  it('has those who wait for a stored chat wait for the attempt that another process has begun', async () => {
    record({ current: { provider: 'bedrock', attempt: 2 } });
    await lostJobs.report([job], Date.now());
    expect(pendingReplies.find('chat')).toMatchObject({ provider: 'bedrock', attempt: 2, isStored: true });
    expect(added).toBe(0);
  });

  it.each([true, false])(
    'has the job of a stored chat added again when it is missing twice (recorded: %s)',
    async (isRecorded) => {
      if (isRecorded) record();
      await lostJobs.report([job], Date.now());
      expect(added).toBe(0);
      await lostJobs.report([job], Date.now());
      expect(added).toBe(1);
    },
  );

  it('leaves a chat alone whose record cannot be read, and goes on', async () => {
    records.set(chatKey('chat'), '{"v":2}');
    for (let n = 0; n < 3; n += 1) await lostJobs.report([job], Date.now());
    expect(added).toBe(0);
  });
});
