import { type ProviderId, providerIds, type Target } from '../contracts/contract.js';
import { isModelName, type ModelAlias, modelPattern } from '../models/model-names.js';

/** A caller does not wait for more than this many, one after another. */
const maxTargets = 4;

/** Reads a comma list of up to four different `provider` or `provider/model`, or `none`. Undefined for other texts. */
export function parseTargets(text: string): Target[] | undefined {
  if (text.trim() === 'none') return [];
  const parts = text.split(',').map((part) => part.trim());
  if (parts.length > maxTargets || new Set(parts).size < parts.length) return undefined;
  const targets = parts.map(parseTarget);
  return targets.every((target) => target !== undefined) ? targets : undefined;
}

/** Reads `name=provider/model`; undefined for other texts, and for a name that says the provider by itself. */
export function parseAlias(text: string): ModelAlias | undefined {
  const [name = '', asked = '', ...more] = text.split('=').map((part) => part.trim());
  const { provider, model } = parseTarget(asked) ?? {};
  const isName = modelPattern.test(name) && !name.slice(0, -1).includes('*');
  const hasProvider = providerIds.some((id) => name.startsWith(`${id}/`));
  if (!isName || hasProvider || provider === undefined || model === undefined || more.length > 0)
    return undefined;
  return { name, provider, model };
}

function parseTarget(part: string): Target | undefined {
  const slash = part.indexOf('/');
  const provider = slash === -1 ? part : part.slice(0, slash);
  if (!isProvider(provider)) return undefined;
  if (slash === -1) return { provider };
  const model = part.slice(slash + 1);
  return isModelName(model) ? { provider, model } : undefined;
}

const isProvider = (name: string): name is ProviderId => (providerIds as readonly string[]).includes(name);
