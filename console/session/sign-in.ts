import type { ConsoleSession } from '../../shared/contracts/contract.ts';
import { ApiError, call } from '../api.ts';
import { beginSession, endSession, followOtherTabs, maybeSignedIn, session } from './session.ts';

const address = '/admin/session';

/** Finds the session, asking the server only if there may be one; then follows the other tabs. To be called once. */
export async function restoreSession(): Promise<void> {
  followOtherTabs(() => void loadSession());
  if (maybeSignedIn()) await loadSession();
  else session.value = null;
}

/** Asks who is signed in; keeps what is known when the server does not answer. */
export async function loadSession(): Promise<void> {
  try {
    session.value = (await call<ConsoleSession>(address)).body;
  } catch (error) {
    if (session.value && !(error instanceof ApiError && error.code === 'unauthorized')) return;
    // The remembered user stays, for a server that answers again.
    session.value = null;
  }
}

/** Throws `ApiError`, with the code `unauthorized` when name or secret are wrong. */
export async function signIn(name: string, secret: string): Promise<void> {
  const { body, headers } = await call<ConsoleSession>(address, { method: 'POST', json: { name, secret } });
  beginSession(body, headers.get('Date'));
}

/** Throws `ApiError` when the server still takes the session for valid. */
export async function signOut({ everywhere = false } = {}): Promise<void> {
  try {
    await call(everywhere ? `${address}?everywhere=true` : address, { method: 'DELETE' });
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'unauthorized') throw error;
  }
  endSession();
}
