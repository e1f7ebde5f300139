import { describe, expect, it } from 'vitest';
import { RecentRequests } from '../../../../api/admin/history/recent-requests.js';
import { recentRequest } from '../../../support/history.js';

const filled = (count: number) => {
  const requests = new RecentRequests();
  for (let n = 0; n < count; n += 1)
    requests.add(recentRequest({ id: `${n}` }), { endedAt: n, isOwn: n % 2 === 0 });
  return requests;
};
const ids = (requests: RecentRequests, limit = 1000) => requests.list({ limit }).map(({ id }) => id);

describe('RecentRequests', () => {
  it('lists the last that ended first, as many as are wanted', () => {
    const requests = filled(3);
    requests.add(recentRequest({ id: 'late news' }), { endedAt: 0.5, isOwn: false });
    expect(ids(requests)).toEqual(['2', '1', 'late news', '0']);
    expect(ids(requests, 2)).toEqual(['2', '1']);
  });

  it('keeps the thousand that ended last, whenever they became known', () => {
    const requests = filled(5000);
    expect(ids(requests)).toHaveLength(1000);
    expect(ids(requests)[0]).toBe('4999');
    expect(requests.after(0).length).toBeLessThanOrEqual(1250);
    for (let n = 0; n < 2000; n += 1)
      requests.add(recentRequest({ id: `old ${n}` }), { endedAt: -1, isOwn: false });
    expect(ids(requests).every((id) => !id.startsWith('old'))).toBe(true);
  });

  it('knows what became known since, and a chat that several had joined only once', () => {
    const requests = filled(3);
    const since = requests.last;
    requests.add(recentRequest({ id: '1' }), { endedAt: 9, isOwn: true });
    expect(requests.after(since)).toEqual([]);
    requests.add(recentRequest({ id: 'new' }), { endedAt: 9, isOwn: true });
    expect(requests.after(since).map(({ request }) => request.id)).toEqual(['new']);
  });

  it('forgets what the others have said', () => {
    const requests = filled(4);
    requests.forgetOthers();
    expect(ids(requests)).toEqual(['2', '0']);
  });
});
