import { useState } from 'preact/hooks';
import { session } from '../session/session.ts';
import { signOut } from '../session/sign-in.ts';
import { formatTime } from './format.ts';
import { ErrorNotice } from './notice.tsx';

/** Who is signed in, and the ways out. */
export function UserMenu() {
  const [error, setError] = useState<unknown>();
  const { user, expiresAt } = session.value ?? {};
  if (!user) return null;
  const leave = (everywhere: boolean) => signOut({ everywhere }).catch(setError);
  return (
    <details class="menu">
      <summary aria-label={`Signed in as ${user.name}`}>{user.name}</summary>
      <div class="menu-content">
        <p class="soft">Signed in{expiresAt && ` until ${formatTime(expiresAt)}`}</p>
        <button type="button" onClick={() => void leave(false)}>
          Sign out
        </button>
        <button type="button" onClick={() => void leave(true)}>
          Sign out everywhere
        </button>
        <ErrorNotice error={error} />
      </div>
    </details>
  );
}
