import { signal } from '@preact/signals';
import type { ConsoleSession } from '../../shared/contract.ts';

/** Who is signed in: undefined while nobody has looked; null when nobody is signed in. */
export const session = signal<ConsoleSession | null | undefined>(undefined);

/**
 * Where this browser remembers that somebody is signed in: a script cannot see the session's cookie, and a browser
 * reports to its console each answer of 401. Its value is when the session ends, in milliseconds since 1970 by this
 * browser's clock.
 */
const rememberedKey = 'quillgate.session-ends';

/** Whether it makes sense to ask the server who is signed in. Without a storage, as with cookies blocked, only the server knows. */
export function maybeSignedIn(): boolean {
  try {
    const endsAt = localStorage.getItem(rememberedKey);
    return endsAt !== null && !(Number(endsAt) <= Date.now());
  } catch {
    return true;
  }
}

/** Takes note of who has signed in; `toldAt` is the answer's `Date`, since the server's clock need not be the browser's. */
export function beginSession(begun: ConsoleSession, toldAt: string | null): void {
  const leftMs = Date.parse(begun.expiresAt) - Date.parse(toldAt ?? '');
  // Without a `Date` it is not a number, and never in the past.
  remember((storage) => storage.setItem(rememberedKey, String(Date.now() + leftMs)));
  session.value = begun;
}

/** Shows the form. Where it is shown already, as after a wrong password, another tab's session may have begun meanwhile, which stays. */
export function endSession(): void {
  if (session.value !== null) remember((storage) => storage.removeItem(rememberedKey));
  session.value = null;
}

/** Follows what other tabs do: `onBegun` is called when one has signed in, and the form comes when one has signed out. */
export function followOtherTabs(onBegun: () => void): void {
  addEventListener('storage', ({ key, newValue }) => {
    if (key !== rememberedKey) return;
    if (newValue === null) session.value = null;
    else if (session.value === null) onBegun();
  });
}

/** A storage that is full costs a sign-in at the next opening, and nothing else. */
function remember(change: (storage: Storage) => void): void {
  try {
    change(localStorage);
  } catch {
    // As above.
  }
}
