import { ApiError, call } from '../api.ts';
import { type Session, session } from './session.ts';

const address = '/admin/session';

/** A browser has six connections to a server, which none that hangs may keep. In milliseconds. */
const timeoutMs = 5000;

/** Finds out who is signed in; keeps what is known when the server does not answer. */
export async function loadSession(): Promise<void> {
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    session.value = (await call<Session>(address, { signal })).body;
  } catch (error) {
    if (session.value && !(error instanceof ApiError && error.code === 'unauthorized')) return;
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
