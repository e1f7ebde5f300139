import { z } from 'zod';
import { providerIds } from '../contract.js';
import { StoreUrlError } from '../urls/store-url-error.js';
import { parseTargets } from './targets.js';

export const port = z.coerce.number().int().min(0).max(65535);
export const milliseconds = (least: number) => z.coerce.number().int().min(least).max(3_600_000);
export const count = (most: number) => z.coerce.number().int().min(1).max(most);
export const byteCount = z.coerce.number().int().min(1024).max(1_099_511_627_776);
export const text = z.string().min(1);
/** Marks a variable whose value is never shown; the mark must stand outside `optional` to be visible. */
export const secret = (schema: z.ZodType<string>, description: string) =>
  schema.optional().meta({ secret: true, description });
export const httpUrl = z.url({ protocol: /^https?$/, error: 'must be an http:// or https:// URL' });

const loopbackHosts = new Set(['localhost', '127.0.0.1', '[::1]']);
/** Credentials go there, so not in the clear. */
export const providerUrl = httpUrl.refine(
  (value) =>
    !URL.canParse(value) ||
    new URL(value).protocol === 'https:' ||
    loopbackHosts.has(new URL(value).hostname),
  'must be https:// unless it points to a loopback address',
);

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

/** Refuses what is typed carelessly (one key held down, a word twice) and easily guessed; random secrets pass, even hexadecimal ones. */
export const varied = z
  .string()
  .refine((value) => new Set(value).size >= 8, 'must have at least 8 different characters');

/** A comma list, its blank parts dropped. */
export const list = z.string().transform((text) =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== ''),
);

export const providerList = z
  .array(z.enum(providerIds, { error: `must be a comma list of: ${providerIds.join(', ')}` }))
  .min(1);

/** Whom to ask when a provider fails, as in `parseTargets`. */
export const targets = z.string().transform((text, context) => {
  const parsed = parseTargets(text);
  if (parsed) return parsed;
  context.addIssue('must be none, or a comma list of up to four different providers or provider/model');
  return z.NEVER;
});
