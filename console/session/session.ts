import { signal } from '@preact/signals';

/** Who is signed in. */
export interface Session {
  user: { id: string; name: string };
  /** RFC 3339. */
  expiresAt: string;
}

/** Undefined while nobody has looked; null when nobody is signed in. */
export const session = signal<Session | null | undefined>(undefined);
