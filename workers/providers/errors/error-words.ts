import { listOf } from '../reply/answer-fields.js';

/** Codes of the system for a connection that did not come about. */
export const unreachable: ReadonlySet<string> = new Set(
  listOf('EAI_AGAIN ECONNREFUSED EHOSTUNREACH ENETUNREACH ENOTFOUND UND_ERR_CONNECT_TIMEOUT'),
);

interface Said {
  status?: number | undefined;
  words?: readonly unknown[];
}

/** The provider's words, and the code of a failed connection, which in an answer is one of the provider's own. */
export function wordsOf(error: unknown, { status, words = [] }: Said): string[] {
  const system = systemCode(error);
  const isAnswered = status !== undefined || words.includes(system);
  return [...words, system].filter(isWord).filter((word) => !(isAnswered && unreachable.has(word)));
}

function isWord(value: unknown): value is string {
  return typeof value === 'string' && /^[\w.-]{1,64}$/.test(value);
}

/** The name of an error's class, where it is a word. */
export function nameOf(error: unknown): string {
  if (!(error instanceof Error)) return 'Error';
  const name = error.name === 'Error' ? error.constructor.name : error.name;
  return isWord(name) ? name : 'Error';
}

/** The operating system's or undici's code at the bottom of a network error, such as `ECONNRESET`. */
function systemCode(error: unknown): unknown {
  if (!(error instanceof Error)) return undefined;
  const { code = '' } = error as NodeJS.ErrnoException;
  // The cause of a connection that took too long is that of one address.
  return unreachable.has(code) ? code : (systemCode(error.cause) ?? code);
}
