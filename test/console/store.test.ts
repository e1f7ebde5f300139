import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { session } from '../../console/session/session.ts';
import { connection, fleet, followFleet, newsAt } from '../../console/store.ts';
import { type StubEventSource, stubEventSources } from './event-source.ts';

let sources: StubEventSource[];
let asked: string[];
let end: () => void;
beforeEach(() => {
  vi.useFakeTimers({
    toFake: ['setTimeout', 'setInterval', 'clearTimeout', 'clearInterval', 'performance', 'Date'],
  });
  sources = stubEventSources();
  asked = [];
  vi.stubGlobal('fetch', async (path: string) => {
    asked.push(path);
    return Response.json({ user: { id: '1', name: 'ada' }, expiresAt: '' });
  });
  end = followFleet();
});
afterEach(() => {
  end();
  vi.useRealTimers();
  vi.unstubAllGlobals();
  fleet.value = undefined;
  newsAt.value = 0;
  session.value = undefined;
});

const pass = (ms: number) => vi.advanceTimersByTime(ms);
const begin = () => sources.at(-1)?.tell('snapshot', { providers: [] });

describe('followFleet', () => {
  it('is live as long as the stream says that it is alive, and asks for nothing else', () => {
    begin();
    for (let second = 0; second < 600; second += 1) {
      pass(1000);
      expect(connection.value).toBe('live');
      sources[0]?.tell('alive', { at: 'now' });
    }
    expect(sources).toHaveLength(1);
    expect(asked).toEqual([]);
    expect(Date.now() - newsAt.value).toBe(0);
  });

  it('says within three seconds that a stream hangs, and opens another one', () => {
    begin();
    pass(2400);
    expect(connection.value).toBe('live');
    pass(500);
    expect(connection.value).toBe('reconnecting');
    expect(sources[0]?.isClosed).toBe(true);
    pass(600);
    expect(sources).toHaveLength(2);
    // Events of the old one no longer count.
    sources[0]?.tell('alive', { at: 'now' });
    expect(connection.value).toBe('reconnecting');
    begin();
    expect(connection.value).toBe('live');
  });

  it('says at once that a stream does not begin, but gives it time', () => {
    pass(2900);
    expect(connection.value).toBe('reconnecting');
    pass(6000);
    expect(sources).toHaveLength(1);
    expect(sources[0]?.isClosed).toBe(false);
    pass(3000);
    expect(sources).toHaveLength(2);
    expect(sources[0]?.isClosed).toBe(true);
  });

  it('does not take its own sleep for the silence of the server', () => {
    begin();
    // The page is frozen: no timer runs, and what comes is read afterwards.
    vi.setSystemTime(Date.now() + 60_000);
    const frozenUntil = performance.now() + 60_000;
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => frozenUntil);
    pass(250);
    expect(connection.value).toBe('live');
    expect(sources[0]?.isClosed).toBe(false);
    pass(250);
    expect(connection.value).toBe('reconnecting');
    clock.mockRestore();
  });

  it('asks who is signed in when the stream breaks, not when it hangs', () => {
    begin();
    pass(2900);
    expect(asked).toEqual([]);
    pass(600);
    sources[1]?.dispatchEvent(new Event('error'));
    expect(asked).toEqual(['/admin/session']);
    expect(sources[1]?.isClosed).toBe(true);
  });

  it('waits longer each time, five seconds at most', () => {
    const breaks = () => sources.at(-1)?.dispatchEvent(new Event('error'));
    for (let n = 0; n < 10; n += 1) {
      breaks();
      pass(5000);
      expect(sources).toHaveLength(n + 2);
    }
    breaks();
    pass(2400);
    expect(sources).toHaveLength(11);
  });
});
