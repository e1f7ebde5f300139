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

describe('LostCallers', () => {
  it('cancels the jobs of a process that has been silent for 15 s, a second later at most', async () => {
    await pass(20, ['worker', 'api', 'other']);
    await pass(14, ['worker', 'other']);
    expect(cancelled).toEqual([]);
    await pass(2, ['worker', 'other']);
    expect(cancelled).toEqual(['api']);
    await pass(5, ['worker', 'api', 'other']);
    expect(cancelled).toEqual([]);
  });

  // Its last report may be as old as the last answer.
  it('knows it as well once the store has forgotten the process', async () => {
    await pass(20, ['worker', 'api', 'other']);
    heartbeats.delete('api');
    await pass(9, ['worker', 'other']);
    expect(cancelled).toEqual([]);
    await pass(9, ['worker', 'other']);
    expect(cancelled).toEqual(['api']);
  });

  it('cancels nothing of a process that it has never seen: one of 0.3 is no node', async () => {
    await pass(60, ['worker', 'other']);
    expect(cancelled).toEqual([]);
  });

  it('asks every five seconds while all are well, also without jobs: one that is taken over may be of a dead process', async () => {
    awaited = new Set();
    await pass(20, ['worker', 'api']);
    expect(asked).toBe(4);
    await pass(20, ['worker']);
    awaited = new Set(['api']);
    await pass(1, ['worker']);
    expect(cancelled).toEqual(['api']);
  });

  it.each<[string, typeof answer]>([
    ['does not answer', () => Promise.reject(new Error('away'))],
    ['has forgotten every process', async () => []],
  ])('cancels nothing after a time in which the store %s, while the others come back', async (_, away) => {
    await pass(20, ['worker', 'api', 'other']);
    const here = answer;
    answer = away;
    await pass(30, []);
    answer = here;
    await pass(9, ['worker', 'other']);
    expect(cancelled).toEqual([]);
    await pass(10, ['worker', 'api', 'other']);
    expect(cancelled).toEqual([]);
    await pass(18, ['worker', 'other']);
    expect(cancelled).toEqual(['api']);
  });

  it('takes an answer that was long in coming for the end of such a time', async () => {
    await pass(20, ['worker', 'api', 'other']);
    const here = answer;
    answer = async (nodes) => {
      nowMs += 20_000;
      heartbeats.set('worker', nowMs);
      return nodes.map((node) => (node.id === 'worker' ? { ...node, lastHeartbeat: nowMs } : node));
    };
    await pass(5, []);
    answer = here;
    await pass(8, ['worker']);
    expect(cancelled).toEqual([]);
  });
});
