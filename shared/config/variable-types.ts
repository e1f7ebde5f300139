import { z } from 'zod';
import { type ProviderId, providerIds, type Target } from '../contracts/contract.js';
import { type ModelAlias, modelName, modelPattern } from '../models/model-names.js';
import { StoreUrlError } from '../urls/store-url-parts.js';

/** A number within bounds; the message is the same for every error. */
export const whole = (
  least: number,
  most: number,
  error = `must be a whole number from ${least} to ${most}`,
) => z.coerce.number({ error }).int({ error }).min(least, { error }).max(most, { error });
export const port = whole(0, 65535, 'must be a whole number from 1 to 65535, or 0 for any free port');
export const milliseconds = (least: number) => whole(least, 3_600_000);
export const count = (most: number) => whole(1, most);
export const byteCount = whole(1024, 1_099_511_627_776);
/** One of the names. */
export const choice = <const Names extends readonly string[]>(names: Names) =>
  z.enum(names, { error: `must be one of: ${names.join(', ')}` });
export const text = z.string().min(1);
/** Marks a variable whose value is never shown; the mark must stand outside `optional` to be visible. */
export const secret = (schema: z.ZodType<string>, description: string) =>
  schema.optional().meta({ secret: true, description });
export const httpUrl = z.url({ protocol: /^https?$/, error: 'must be an http:// or https:// URL' });

const loopbackHosts = new Set(['localhost', '127.0.0.1', '[::1]']);
/** Credentials go there, so not in the clear. */
export const providerUrl = httpUrl.refine((value) => {
  const { protocol = 'https:', hostname = '' } = URL.parse(value) ?? {};
  return protocol === 'https:' || loopbackHosts.has(hostname);
}, 'must be https:// unless it points to a loopback address');

/** A URL that the parser accepts; shows the parser's own message otherwise. */
export const storeUrl = (parse: (url: string) => unknown) =>
  z.string().check(({ value, issues }) => {
    try {
      parse(value);
    } catch (error) {
      if (!(error instanceof StoreUrlError)) throw error;
      issues.push({ code: 'custom', message: error.message, input: value });
    }
  });

/** Refuses careless secrets (one key held down, a word twice), which are easily guessed; random ones pass. */
const varied = z
  .string()
  .refine((value) => new Set(value).size >= 8, 'must have at least 8 different characters');

/** A password or token of at least so many characters. */
export const longSecret = (least: number) =>
  z
    .string()
    .min(least, `must have at least ${least} characters`)
    .max(512, 'must have at most 512 characters')
    .pipe(varied);

/** A comma list, its blank parts dropped. */
export const list = z.string().transform((text) =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== ''),
);

const outputLimit = new RegExp(`^(${modelPattern.source.slice(1, -1)}=)?[1-9]\\d{0,6}$`);
/** Limits in tokens, as in `outputLimitOf`. */
export const outputLimits = list.refine(
  (parts) => parts.length > 0 && parts.every((part) => outputLimit.test(part)),
  'must be a whole number from 1 to 9999999, or a comma list of them with model=number, in which * stands for any characters',
);

const imageHost = /^(\*\.)?([a-z0-9-]+\.)+[a-z0-9-]+(:\d{1,5})?$/i;
/** Where images may come from. */
export const imageHosts = list.refine(
  (parts) =>
    ['https', 'none'].includes(parts.join()) ||
    (parts.length > 0 && parts.every((part) => imageHost.test(part))),
  'must be https, none, or a comma list of hosts such as images.example.org',
);

export const providerList = z
  .array(z.enum(providerIds, { error: `must be a comma list of: ${providerIds.join(', ')}` }))
  .min(1);

/** The fallback of a provider, as in `parseTargets`. */
export const targets = z.string().transform((text, context) => {
  const parsed = parseTargets(text);
  if (parsed) return parsed;
  context.addIssue('must be none, or a comma list of up to four different providers or provider/model');
  return z.NEVER;
});

/** Other names of models, as in `parseAlias`. */
export const aliases = list.transform((parts, context) => {
  const parsed = parts.map(parseAlias).filter((alias) => alias !== undefined);
  if (parsed.length === parts.length && new Set(parsed.map(({ name }) => name)).size === parts.length)
    return parsed;
  context.addIssue('must be a comma list of different name=provider/model; a name may end with *');
  return z.NEVER;
});

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
function parseAlias(text: string): ModelAlias | undefined {
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
  return modelName.test(model) ? { provider, model } : undefined;
}

const isProvider = (name: string): name is ProviderId => (providerIds as readonly string[]).includes(name);
