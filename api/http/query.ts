import type { RequestHandler } from 'express';
import { z } from 'zod';
import type { ProblemError } from '../../shared/contracts/contract.js';
import { describeIssue, invalidRequest } from '../../shared/validation.js';

/**
 * Refuses a query with invalid parameters, each as it was sent. Runs before the generated check, whose errors are less
 * precise, or missing. Ignores unknown parameters. Throws `invalid_request`.
 */
export function checkQuery(schema: z.ZodObject): RequestHandler {
  return (request, _response, next) => {
    const { values, errors } = readQuery(request.originalUrl, schema);
    for (const { path, message } of schema.safeParse(values, { error: describeIssue }).error?.issues ?? []) {
      errors.push({ pointer: String(path[0]), detail: message });
    }
    if (errors.length > 0) throw invalidRequest(errors);
    // Replaces the query of the application's parser, which ignores everything after a thousand parameters. A copy each
    // time: the generated check writes defaults into its own.
    Object.defineProperty(request, 'query', { get: () => ({ ...values }) });
    next();
  };
}

/** The part of a query by which a list comes in pages. */
export interface PageQuery {
  /**
   * Maximum number of items in the answer.
   * @isInt
   * @minimum 1
   * @maximum 200
   * @default 100
   */
  limit?: number;
}

/** Items of a page unless the query says another number. */
export const defaultLimit = 100;

/** The maximum number of items in the answer; 100 unless it is given. */
export const pageLimit = z
  .string()
  .regex(/^([1-9]\d?|1\d\d|200)$/, { error: 'must be a whole number from 1 to 200' });

/** The known parameters. The application's parser would turn undecodable bytes into U+FFFD. */
function readQuery(
  url: string,
  { shape }: z.ZodObject,
): { values: Record<string, string>; errors: ProblemError[] } {
  const values: Record<string, string> = {};
  const errors: ProblemError[] = [];
  const start = url.indexOf('?');
  for (const pair of start < 0 ? [] : url.slice(start + 1).split('&')) {
    const [encodedName = '', ...rest] = pair.split('=');
    const [name, value] = [decode(encodedName), decode(rest.join('='))];
    if (!Object.hasOwn(shape, name)) continue;
    if (value === undecodable) errors.push({ pointer: name, detail: 'must be percent-encoded UTF-8' });
    else if (Object.hasOwn(values, name)) errors.push({ pointer: name, detail: 'must be sent once' });
    else values[name] = value;
  }
  return { values, errors };
}

/** A lone surrogate, which no decoded text contains. */
const undecodable = '\ud800';

function decode(encoded: string): string {
  if (/[^\x20-\x7e]/.test(encoded)) return undecodable;
  try {
    return decodeURIComponent(encoded.replaceAll('+', ' '));
  } catch {
    return undecodable;
  }
}
