import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { addRequest, isWanted, maxShown, openRequests, pathOf } from '../../../console/requests/recent.ts';
import { followFleet } from '../../../console/store.ts';
import type { RecentRequest } from '../../../shared/history.ts';
import { recentRequest } from '../../support/history.js';
import { patience } from '../../support/patience.js';

const all = { id: '', provider: '', code: '', user: '' };

describe('pathOf', () => {
  it('asks for what is wanted alone', () => {
    expect(pathOf(all)).toBe('/admin/requests?limit=200');
    expect(pathOf({ id: 'a-1', provider: 'openai', code: 'ok', user: 'Ben & Ö' })).toBe(
      '/admin/requests?limit=200&id=a-1&provider=openai&code=ok&user=Ben+%26+%C3%96',
    );
  });
});

describe('isWanted', () => {
  it('is as the API chooses', () => {
    const request = recentRequest({ user: 'anna' });
    expect(isWanted(all, request)).toBe(true);
    expect(isWanted({ ...all, provider: 'openai', code: 'ok', user: 'anna' }, request)).toBe(true);
    expect(isWanted({ ...all, id: request.id }, request)).toBe(true);
    for (const other of [{ id: 'another' }, { provider: 'bedrock' }, { code: 'timeout' }, { user: 'ann' }])
      expect(isWanted({ ...all, ...other }, request)).toBe(false);
  });
});

describe('addRequest', () => {
  it('puts the newest first, each once, and keeps no more than are shown', () => {
    const a = recentRequest({ id: 'a' });
    const b = recentRequest({ id: 'b' });
    const two = addRequest([a], b);
    expect(two.map(({ id }) => id)).toEqual(['b', 'a']);
    expect(addRequest(two, a)).toBe(two);
    let many = two;
    for (let n = 0; n < 300; n += 1) many = addRequest(many, recentRequest({ id: `${n}` }));
    expect(many).toHaveLength(maxShown);
    expect(many[0]?.id).toBe('299');
  });
});

/** The page's event stream, as far as the page uses it. */
class StubEventSource extends EventTarget {
  close(): void {}
}

describe('openRequests', () => {
  /** The reads under way; each is answered by the test. */
  let reads: PromiseWithResolvers<Response>[];
  let stream: StubEventSource;
  let chats: ReturnType<typeof openRequests>;
  let stop: () => void;
  let endStream: () => void;
  beforeEach(() => {
    reads = [];
    stream = new StubEventSource();
    vi.stubGlobal('EventSource', function open() {
      return stream;
    });
    vi.stubGlobal('fetch', () => {
      const read = Promise.withResolvers<Response>();
      reads.push(read);
      return read.promise;
    });
    endStream = followFleet();
    chats = openRequests({ ...all, code: 'ok' });
    stop = chats.follow();
  });
  afterEach(() => {
    stop();
    endStream();
    vi.unstubAllGlobals();
  });

  const tell = (event: string, data: object) =>
    stream.dispatchEvent(new MessageEvent(event, { data: JSON.stringify(data) }));
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
