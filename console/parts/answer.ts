import { useEffect, useState } from 'preact/hooks';
import { call } from '../api.ts';

/**
 * Calls `read` now and `everyMs` after each end of it, until it gives true or the function given back is called, which
 * aborts its signal. `read` does not reject.
 */
export function poll(everyMs: number, read: (signal: AbortSignal, reads: number) => Promise<boolean>) {
  const stopping = new AbortController();
  let timer: ReturnType<typeof setTimeout>;
  const next = async (reads: number) => {
    const isDone = await read(stopping.signal, reads);
    if (!isDone && !stopping.signal.aborted) timer = setTimeout(() => void next(reads + 1), everyMs);
  };
  void next(1);
  return () => {
    stopping.abort();
    clearTimeout(timer);
  };
}

/** Ends the polling for an answer, which is undefined while there is none, after so many reads. */
type Until<T> = (value: T | undefined, reads: number) => boolean;

/** The answer of a path, read once, or each `everyMs` until `until`; a value stays when a later read fails. */
export function useAnswer<T>(path: string, everyMs = 0, until: Until<T> = () => everyMs === 0) {
  const [answer, setAnswer] = useState<{ path: string; value?: T; error?: unknown }>({ path });
  const [version, setVersion] = useState(0);
  useEffect(
    () =>
      poll(everyMs, async (signal, reads) => {
        try {
          const { body } = await call<T>(path, { headers: { Accept: 'application/json' }, signal });
          if (!signal.aborted) setAnswer({ path, value: body });
          return until(body, reads);
        } catch (error) {
          if (!signal.aborted)
            setAnswer((before) => (before.path === path ? { ...before, error } : { path, error }));
          return until(undefined, reads);
        }
      }),
    [path, version],
  );
  const { value, error } = answer.path === path ? answer : {};
  return { value, error, readAgain: () => setVersion(version + 1) };
}
