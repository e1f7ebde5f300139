import { signal } from '@preact/signals';
import type { ConsoleSession } from '../../shared/contracts/contract.ts';

/** The user who is signed in: undefined before the first look; null without a session. */
export const session = signal<ConsoleSession | null | undefined>(undefined);

/** Key of the session's end, in ms since 1970: a script sees no cookie, and a browser logs each answer of 401. */
const rememberedKey = 'quillgate.session-ends';

/** Whether to ask the server for the session. Without a storage, as with cookies blocked, only the server knows. */
export function maybeSignedIn(): boolean {
  try {
    const endsAt = localStorage.getItem(rememberedKey);
    return endsAt !== null && !(Number(endsAt) <= Date.now());
  } catch {
    return true;
  }
}

/** Remembers the user who has signed in; `toldAt` is the answer's `Date`, by the server's clock. */
export function beginSession(begun: ConsoleSession, toldAt: string | null): void {
  const leftMs = Date.parse(begun.expiresAt) - Date.parse(toldAt ?? '');
  // Without a `Date` it is not a number, and never in the past.
  remember((storage) => storage.setItem(rememberedKey, String(Date.now() + leftMs)));
  session.value = begun;
}

/** Shows the form. If it is shown already, another tab's session may have begun meanwhile, which stays. */
export function endSession(): void {
  if (session.value !== null) remember((storage) => storage.removeItem(rememberedKey));
  session.value = null;
}

/** Follows the other tabs: `onBegun` is called after a sign-in there; after a sign-out the form comes. */
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
    // The next opening asks for a sign-in.
  }
}
