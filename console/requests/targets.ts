import type { RecentRequest } from '../../shared/history.ts';

/** A provider, and the model there if it is known. */
export interface RequestTarget {
  readonly provider: string;
  readonly model?: string | undefined;
}

/** The target that was asked and, if a fallback answered, the one that answered. */
export function targetsOf({ provider, model, code, attempts }: RecentRequest): {
  asked: RequestTarget;
  answered?: RequestTarget;
} {
  const [first, last] = [attempts[0], attempts.at(-1)];
  if (attempts.length < 2 || first === undefined || last === undefined) return { asked: { provider, model } };
  const isAnswered = code === 'ok' || code === 'truncated';
  return {
    asked: { provider, model: first.model },
    ...(isAnswered && { answered: { provider: last.provider, model: last.model ?? model } }),
  };
}
