/** An error answer in a provider's format, ready to be sent. */
export interface Refusal {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A refusal with a JSON body. */
export function jsonRefusal(status: number, body: object, headers: Record<string, string> = {}): Refusal {
  return { status, headers: { 'Content-Type': 'application/json', ...headers }, body: JSON.stringify(body) };
}

/** The refusal, or what else a check gives, of the first item that it does not pass. */
export function firstRefusal<T, Found = Refusal>(
  items: readonly T[],
  check: (item: T, index: number) => Found | undefined,
): Found | undefined {
  for (const [index, item] of items.entries()) {
    const refusal = check(item, index);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

/** A fault of thinking: another model's; behind another conversation, or changed; one before it is missing. */
export type Breach = 'foreign' | 'elsewhere' | 'gap';

/** The errors of a provider, in its own format. */
export interface ErrorBodies {
  contentType(received: string): Refusal;
  /** The body is not well-formed JSON, or not an object. */
  json(): Refusal;
  /** The model does not exist; `path` is the request's. */
  model(model: string | undefined, path: string): Refusal;
  /** The credentials do not open this model: a 401 that names it. */
  denied(model: string): Refusal;
  /** The provider's usual error for a status (400 to 599). */
  status(status: number): Refusal;
  tooLong(tokens: number, maxTokens: number): Refusal;
  notReady(): Refusal;
  /** Credit or a quota that is spent, as far as it has words of its own. */
  readonly quotas: readonly Refusal[];
  /** The model does not take a hint, which has our name. */
  hint(name: string, value: unknown): Refusal;
  /** The model always thinks, and cannot be forced to call a tool; absent where that is possible. */
  forcedChoice?(): Refusal;
  /** The model caches nothing that is marked; absent where marks do no harm. */
  cache?(): Refusal;
  /** The thinking before calls did not come back; absent where that may be. */
  lostReasoning?(): Refusal;
  /** The model takes some efforts only without tools, or not at all; undefined for those that it takes. */
  effort?(asked: { tools?: unknown; reasoningEffort?: unknown }, model: string): Refusal | undefined;
  /** The model does not think: it has nothing to encrypt, or does not take thinking; absent where it takes all. */
  reasoning?(): Refusal;
  /** Thinking came back elsewhere than it was, or changed; undefined where the provider drops it unsaid. */
  unbound?(place: { turn: number; part: number }, breach: Breach): Refusal | undefined;
  /** A signed part came back changed; absent where models sign nothing. */
  signature?(): Refusal;
}

/** The name of a field in a body, such as `top_p`, for the name that this code uses. */
export const snakeCase = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
