import { beforeEach, describe, expect, it } from 'vitest';
import type { RelayNode } from '../../../shared/queue/relay.js';
import { LostCallers } from '../../../workers/job/lost-callers.js';
import { createRecordingLog } from '../../support/recording-log.js';

let nowMs: number;
let asked: number;
let cancelled: string[];
let awaited: Set<string>;
/** When each process has last reported. */
let heartbeats: Map<string, number>;
/** The store's behaviour instead of an answer. */
let answer: (nodes: RelayNode[]) => Promise<RelayNode[]>;
let callers: LostCallers;

beforeEach(() => {
  [nowMs, asked, cancelled, awaited] = [1_000_000, 0, [], new Set(['api', 'other'])];
  heartbeats = new Map();
  answer = async (nodes) => nodes;
  callers = new LostCallers({
    jobs: {
      get apis() {
        return awaited;
      },
      cancelApis: (gone) => {
        cancelled = [...gone.keys()];
      },
    },
    relay: {
      nodeId: 'worker',
      nodes: () => {
        asked += 1;
        return answer([...heartbeats].map(([id, lastHeartbeat]) => ({ id, lastHeartbeat })));
      },
    },
    now: () => nowMs,
    log: createRecordingLog().log,
    clock: () => nowMs,
  });
});

/** Lets so many seconds pass in which these processes report. */
async function pass(seconds: number, alive: readonly string[]): Promise<void> {
  for (let second = 0; second < seconds; second += 1) {
    nowMs += 1000;
    for (const id of alive) heartbeats.set(id, nowMs);
    await callers.check();
  }
}

const all = ['worker', 'api', 'other'];
/** All but the one that is lost. */
const left = ['worker', 'other'];

describe('LostCallers', () => {
  it('a process is silent for 15 s -> its jobs are cancelled, a second later at most; of one never seen none is', async () => {
    // One of release 0.3 is no node.
    awaited.add('unknown');
    await pass(20, all);
    await pass(14, left);
    expect(cancelled).toEqual([]);
    await pass(2, left);
    expect(cancelled).toEqual(['api']);
    await pass(5, all);
    expect(cancelled).toEqual([]);
  });

  // Its last report may be as old as the last answer.
  it('the store has forgotten the process by then -> they are cancelled as well', async () => {
    await pass(20, all);
    heartbeats.delete('api');
    await pass(9, left);
    expect(cancelled).toEqual([]);
    await pass(9, left);
    expect(cancelled).toEqual(['api']);
  });

  it('all are well, also without jobs -> asks every five seconds: one that is taken over may be of a dead process', async () => {
    awaited = new Set();
    await pass(20, ['worker', 'api']);
    expect(asked).toBe(4);
    await pass(20, ['worker']);
    awaited = new Set(['api']);
    await pass(1, ['worker']);
    expect(cancelled).toEqual(['api']);
  });

  it.each<[string, number, typeof answer]>([
    ['does not answer', 30, () => Promise.reject(new Error('away'))],
    ['has forgotten every process', 30, async () => []],
    [
      'takes long to answer',
      5,
      async (nodes) => {
        nowMs += 20_000;
        heartbeats.set('worker', nowMs);
        return nodes.map((node) => (node.id === 'worker' ? { ...node, lastHeartbeat: nowMs } : node));
      },
    ],
  ])('the store %s for %i s -> nothing is cancelled while the others come back', async (_, seconds, away) => {
    await pass(20, all);
    const here = answer;
    answer = away;
    await pass(seconds, []);
    answer = here;
    await pass(9, left);
    expect(cancelled).toEqual([]);
    await pass(10, all);
    expect(cancelled).toEqual([]);
    await pass(18, left);
    expect(cancelled).toEqual(['api']);
  });
});
