import type { ProviderId } from '../contracts/contract.js';

/** The form of a model's name. It becomes part of providers' URLs: no `..`, and no character that needs escaping. */
export const modelName = /^(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._:/@-]{0,255}$/;

/** The form of a pattern of such names, in which `*` stands for any characters. */
export const modelPattern = /^[A-Za-z0-9*][A-Za-z0-9._:/@*-]{0,255}$/;

/** Which models callers may name at a provider, besides its default one. */
export interface ModelRules {
  /** The operator's own choice, which callers may always name. */
  defaultModel?: string | undefined;
  /** Names, in which `*` stands for any characters; without it, any plain name is allowed. */
  models?: readonly string[] | undefined;
  /** The environment's models, if operators have set others: they can narrow them, but not widen them. */
  environment?: Omit<ModelRules, 'environment'> | undefined;
}

/** Another name for a model; one that ends with `*` stands for all names that begin so. */
export interface ModelAlias {
  readonly name: string;
  readonly provider: ProviderId;
  /** The provider's own name of the model. */
  readonly model: string;
}

/** The first alias that a name fits. */
export const findAlias = (name: string, aliases: readonly ModelAlias[]): ModelAlias | undefined =>
  aliases.find((alias) => matches(alias.name, name));

/** Whether callers may name this model. Takes time in proportion to the name and the patterns. */
export function isModelAllowed(model: string, { defaultModel, models, environment }: ModelRules): boolean {
  if (environment && !isModelAllowed(model, environment)) return false;
  if (model === defaultModel) return true;
  return models ? models.some((pattern) => matches(pattern, model)) : isPlainName(model);
}

/**
 * Whether operators may set this name, or pattern of names. A pattern must match only names that the environment's list
 * allows: a `*` in it is matched only by a `*` in the list. Without a list a pattern stands for plain names only.
 */
export function isSettable(pattern: string, environment: Omit<ModelRules, 'environment'>): boolean {
  return isModelAllowed(environment.models ? pattern : pattern.replaceAll('*', 'x'), environment);
}

/** Can only mean a model of the provider's own list; a path or ARN could be any project that our identity may use. */
const isPlainName = (model: string): boolean =>
  /^[A-Za-z0-9][\w.:@-]{0,127}$/.test(model) && !model.toLowerCase().startsWith('arn:');

/** The limit of a model, in tokens: of the first `model=number` that fits, else the number alone. */
export function outputLimitOf(model: string, limits: readonly string[] = []): number | undefined {
  const split = limits.map((limit) => limit.split('=').reverse());
  const own = split.find(([, pattern]) => pattern !== undefined && matches(pattern, model));
  const [tokens] = own ?? split.find(([, pattern]) => pattern === undefined) ?? [];
  return tokens === undefined ? undefined : Number(tokens);
}

/** No regular expression: several `.*` in one would take time that grows with a power of the name's length. */
function matches(pattern: string, model: string): boolean {
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop();
  if (last === undefined) return model === pattern;
  if (!model.startsWith(first)) return false;
  let from = first.length;
  for (const part of rest) {
    const at = model.indexOf(part, from);
    if (at === -1) return false;
    from = at + part.length;
  }
  return model.length - last.length >= from && model.endsWith(last);
}
