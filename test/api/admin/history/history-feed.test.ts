import { describe, expect, it } from 'vitest';
import { HistoryFeed } from '../../../../api/admin/history/history-feed.js';
import { RecentRequests } from '../../../../api/admin/history/recent-requests.js';
import type { Sample } from '../../../../shared/contracts/history.js';
import { recentRequest } from '../../../support/history.js';

function open(wanted = { requests: true, samples: true }) {
  let at = 1_000_000;
  let touched = 0;
  const requests = new RecentRequests();
  const samples: Sample[] = [];
  const touch = () => {
    touched += 1;
  };
  const feed = new HistoryFeed(wanted, { requests, samples: () => samples, touch, now: () => at });
  const end = (id: string, endedAt = at) => requests.add(recentRequest({ id }), { endedAt, isOwn: true });
  const measure = (slot: number) =>
    samples.push({
      ...{ provider: 'openai', at: new Date(slot).toISOString(), waiting: 1, active: 1, inFlight: 1 },
      ...{ concurrency: 1, arrivals: 1, ended: 1, failed: 0, queueMs: null, providerMs: null },
    });
  const pass = (ms: number) => {
    at += ms;
  };
  const names = () => feed.next().map(({ event, data }) => `${event} ${JSON.parse(data).id ?? ''}`.trim());
  return { feed, end, measure, pass, names, touched: () => touched };
}

describe('HistoryFeed', () => {
  it('tells each chat that ends once, not what had ended before', () => {
    const { end, names } = open();
    end('a');
    end('old, of another process', 999_999);
    expect(names()).toEqual(['request a']);
    end('b');
    expect(names()).toEqual(['request b']);
    expect(names()).toEqual([]);
  });

  it('says only how many a reader has missed who was behind', () => {
    const { end, feed, names } = open();
    for (let n = 0; n < 5000; n += 1) end(`${n}`);
    const events = feed.next();
    expect(events).toHaveLength(1);
    expect(events[0]).toMatchObject({ event: 'missed' });
    expect(JSON.parse(events[0]?.data ?? '').requests).toBeGreaterThan(100);
    end('next');
    expect(names()).toEqual(['request next']);
  });

  it('tells a sample once the other processes had time to tell theirs', () => {
    const { measure, pass, names } = open();
    measure(1_000_000);
    pass(6000);
    expect(names()).toEqual([]);
    pass(1000);
    expect(names()).toEqual(['sample']);
    expect(names()).toEqual([]);
  });

  it('tells nothing that was not asked for, and asks nobody for it', () => {
    const { end, measure, pass, names, touched } = open({ requests: false, samples: false });
    end('a');
    measure(1_000_000);
    pass(7000);
    expect([names(), touched()]).toEqual([[], 0]);
  });
});
