import { ApiError, call } from '../api.ts';
import { type Session, session } from './session.ts';

const address = '/admin/session';

/** Finds out who is signed in; keeps what is known when the server does not answer. */
export async function loadSession(): Promise<void> {
  try {
    session.value = (await call<Session>(address)).body;
  } catch (error) {
    if (error instanceof ApiError && error.code !== 'unauthorized' && session.value) return;
    session.value = null;
  }
}

/** Throws `ApiError`, with the code `unauthorized` when name or secret are wrong. */
export async function signIn(name: string, secret: string): Promise<void> {
  const { body } = await call<Session>(address, { method: 'POST', json: { name, secret } });
  session.value = body;
}

/** Throws `ApiError` when the server still takes the session for valid. */
export async function signOut({ everywhere = false } = {}): Promise<void> {
  try {
    await call(everywhere ? `${address}?everywhere=true` : address, { method: 'DELETE' });
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'unauthorized') throw error;
  }
  session.value = null;
}
