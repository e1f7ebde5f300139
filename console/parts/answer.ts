import { useEffect, useState } from 'preact/hooks';
import { call } from '../api.ts';

/** The body of an answer that only adds to what is shown; undefined before it comes and if it fails. */
export function useAnswer<T>(path: string): T | undefined {
  const [answer, setAnswer] = useState<T>();
  useEffect(() => {
    const headers = { Accept: 'application/json' };
    call<T>(path, { headers }).then(
      ({ body }) => setAnswer(body),
      () => undefined,
    );
  }, [path]);
  return answer;
}
