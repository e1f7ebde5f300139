import { describe, expect, it } from 'vitest';
import { comparePeerWithAims } from './aims.js';
import type { ChatResults } from './chat.js';

/** One row at 128 connections and 0 ms whose rates have this ratio. */
function chatsOf(ratio: number, { ours = 0, others = 0 } = {}): ChatResults[] {
  const side = (errors: number) => ({ answers: 1, errors, perSecond: 1, cpuMs: {}, peakBytes: {} });
  const row = {
    ...{ latencyMs: 0, connections: 128, rounds: [] },
    bySide: { quillgate: side(ours), portkey: side(others), simulator: side(0) },
    ratios: { perSecond: { median: ratio, least: ratio - 0.1, most: ratio + 0.1 } },
  };
  return [{ store: 'redis', idlePerSecond: { cpuMs: {} }, rows: [row], skipped: [] }];
}

const throughput = (chats: ChatResults[]) =>
  comparePeerWithAims(chats).find(({ aim }) => aim.includes('requests/s') && aim.endsWith('128 connections'));

describe('comparePeerWithAims', () => {
  it.each([
    ['met', chatsOf(1)],
    ['not met', chatsOf(0.99)],
    ['not met', chatsOf(1.5, { ours: 1 })],
    ['met', chatsOf(1.5, { others: 1 })],
    ['not measured', []],
  ])('says %s', (verdict, chats) => {
    expect(throughput(chats)).toMatchObject({ verdict });
  });

  it('shows the spread, and the errors of both', () => {
    const numbers = '× 1.00, 0.90 to 1.10; errors: 2, Portkey 3';
    expect(throughput(chatsOf(1, { ours: 2, others: 3 }))).toMatchObject({ numbers });
  });
});
