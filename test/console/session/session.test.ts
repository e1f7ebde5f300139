import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { beginSession, endSession, maybeSignedIn, session } from '../../../console/session/session.ts';
import { restoreSession } from '../../../console/session/sign-in.ts';
import { patience } from '../../support/patience.ts';

const user = { id: '1', name: 'ada' };
let stored: Map<string, string>;
let asked: number;
let page: EventTarget;
beforeEach(() => {
  stored = new Map();
  asked = 0;
  page = new EventTarget();
  session.value = undefined;
  vi.stubGlobal('addEventListener', page.addEventListener.bind(page));
  vi.stubGlobal('localStorage', {
    getItem: (key: string) => stored.get(key) ?? null,
    setItem: (key: string, value: string) => stored.set(key, value),
    removeItem: (key: string) => stored.delete(key),
  });
  vi.stubGlobal('fetch', async () => {
    asked += 1;
    return Response.json({ user, expiresAt: '' });
  });
});
afterEach(() => {
  session.value = undefined;
  vi.unstubAllGlobals();
});

/** A session of so many milliseconds, by a server whose clock is a day behind. */
const begin = (ms: number) => {
  const told = Date.now() - 86_400_000;
  const date = new Date(told).toUTCString();
  beginSession({ user, expiresAt: new Date(told + ms).toISOString() }, date);
};
const tellOtherTab = (newValue: string | null) =>
  page.dispatchEvent(Object.assign(new Event('storage'), { key: 'quillgate.session-ends', newValue }));

describe('restoreSession', () => {
  it('asks the server only after a sign-in', async () => {
    await restoreSession();
    expect([asked, session.value]).toEqual([0, null]);
    begin(60_000);
    await restoreSession();
    expect(asked).toBe(1);
    endSession();
    await restoreSession();
    expect([asked, session.value]).toEqual([1, null]);
  });

  it('does not ask about a session that has expired', async () => {
    begin(-60_000);
    expect(maybeSignedIn()).toBe(false);
  });

  it('asks where the browser remembers nothing', async () => {
    vi.stubGlobal('localStorage', undefined);
    await restoreSession();
    expect(asked).toBe(1);
  });

  it('follows what other tabs do', async () => {
    await restoreSession();
    tellOtherTab('1');
    await vi.waitFor(() => expect(session.value).toMatchObject({ user }), patience);
    tellOtherTab(null);
    expect(session.value).toBeNull();
  });

  it('keeps what another tab has begun when a password was wrong here', () => {
    begin(60_000);
    session.value = null;
    endSession();
    expect(maybeSignedIn()).toBe(true);
  });
});
