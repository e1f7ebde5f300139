import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { maxShown, openRequests } from '../../../console/requests/recent.ts';
import { followFleet } from '../../../console/store.ts';
import type { RecentRequest } from '../../../shared/contracts/history.ts';
import { recentRequest } from '../../support/history.js';
import { patience } from '../../support/patience.js';
import { type StubEventSource, stubEventSources } from '../event-source.ts';

describe('openRequests', () => {
  /** The reads under way; each is answered by the test. */
  let reads: PromiseWithResolvers<Response>[];
  let streams: StubEventSource[];
  let chats: ReturnType<typeof openRequests>;
  let stop: () => void;
  let endStream: () => void;
  beforeEach(() => {
    reads = [];
    streams = stubEventSources();
    vi.stubGlobal('fetch', () => {
      const read = Promise.withResolvers<Response>();
      reads.push(read);
      return read.promise;
    });
    endStream = followFleet();
    chats = openRequests({ id: '', provider: '', code: 'ok', user: '' });
    stop = chats.follow();
  });
  afterEach(() => {
    stop();
    endStream();
    vi.unstubAllGlobals();
  });

  const tell = (event: string, data: object) => streams[0]?.tell(event, data);
  const end = (id: string, own: Partial<RecentRequest> = {}) =>
    tell('request', recentRequest({ ...own, id }));
  const answer = async (read: number, ...ids: string[]) => {
    const requests = ids.map((id) => recentRequest({ id }));
    reads[read]?.resolve(Response.json({ processes: 2, isPartial: false, requests }));
    await vi.waitFor(() => expect(shown()).toEqual(expect.arrayContaining(ids)), patience);
  };
  const shown = () => chats.known.value?.requests.map(({ id }) => id);
  const asked = (times: number) => vi.waitFor(() => expect(reads).toHaveLength(times), patience);

  it('adds to an answer what has ended since it was asked for', async () => {
    end('b');
    end('c');
    end('other', { code: 'timeout' });
    await answer(0, 'b', 'a');
    expect(shown()).toEqual(['c', 'b', 'a']);
    tell('missed', { requests: 101 });
    await asked(2);
    end('e');
    expect(shown()).toEqual(['e', 'c', 'b', 'a']);
    await answer(1, 'd', 'c');
    expect(shown()).toEqual(['e', 'd', 'c']);
    for (let n = 0; n < 300; n += 1) end(`${n}`);
    expect(shown()).toHaveLength(maxShown);
    expect(shown()?.[0]).toBe('299');
  });

  it.each(['missed', 'snapshot'])('reads once more upon a `%s` that comes while it reads', async (event) => {
    tell(event, { providers: [] });
    tell(event, { providers: [] });
    expect(reads).toHaveLength(1);
    await answer(0, 'a');
    await asked(2);
    await answer(1, 'b', 'a');
    end('c');
    expect(shown()).toEqual(['c', 'b', 'a']);
    expect(reads).toHaveLength(2);
  });

  it('reads once more after a read that failed, and not after it was stopped', async () => {
    tell('missed', { requests: 101 });
    reads[0]?.reject(new TypeError('failed'));
    await asked(2);
    expect(chats.error.value).toMatchObject({ code: 'unreachable' });
    await answer(1, 'a');
    expect(chats.error.value).toBeUndefined();
    tell('missed', { requests: 101 });
    await asked(3);
    tell('missed', { requests: 101 });
    stop();
    reads[2]?.resolve(Response.json({ requests: [] }));
    await vi.waitFor(() => expect(shown()).toEqual([]), patience);
    expect(reads).toHaveLength(3);
  });
});
