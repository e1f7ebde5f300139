import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { z } from 'zod';
import type { ProblemError } from '../../shared/contracts/contract.js';
import { Failure } from '../../shared/failures.js';
import { describeIssue, invalid, invalidRequest } from '../../shared/validation.js';

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

/** The parser takes quadratic time; browsers send a tenth of this. */
const maxAccept = 1000;

/**
 * The media type, of the keys, that the request's `Accept` prefers (RFC 9110, 12.5.1); their order is the
 * server's own preference. Undefined when it accepts none of them, or is too long to be weighed.
 */
export function preferredOf<T>(request: Request, offered: Readonly<Record<string, T>>): T | undefined {
  if ((request.get('Accept')?.length ?? 0) > maxAccept) return undefined;
  const accepted = request.accepts(Object.keys(offered));
  return accepted === false ? undefined : offered[accepted];
}

// Both also with a charset, for clients that name one.
const jsonOrHtml = {
  'application/json': false,
  'application/json;charset=utf-8': false,
  'text/html': true,
  'text/html;charset=utf-8': true,
};

/** Whether the request asks for a page by name; other requests get JSON. */
export const prefersHtml = (request: Request): boolean =>
  /text\/html/i.test(request.get('Accept') ?? '') && (preferredOf(request, jsonOrHtml) ?? false);

/** Throws `invalid_request` unless it is 1 to 255 visible ASCII characters; Node joins repeated ones with a blank. */
export function readIdempotencyKey(header: string | undefined): string | undefined {
  if (header === undefined || /^[\x21-\x7e]{1,255}$/.test(header)) return header;
  throw invalid('Idempotency-Key', 'must be 1 to 255 visible ASCII characters');
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Whether a text has the form of an id. */
export const isUuid = (text: string): boolean => uuid.test(text);

/** Throws `not_found` unless the `id` of the path is a UUID: the stores would fail on other ids. */
export function checkUuidParam({ params: { id } }: Request, _response: Response, next: NextFunction): void {
  if (typeof id !== 'string' || !isUuid(id)) throw new Failure('not_found');
  next();
}

/** A field of a body that is not known. Its caller has chosen the name, which is shortened and escaped. */
export interface UnknownField {
  /** The name as `X-Ignored-Fields` has it. */
  readonly name: string;
  readonly pointer: string;
}

/** The unknown fields of the object at this path of the body; the limit on a body's values bounds them. */
export const unknownFieldsOf = (
  value: object,
  known: ReadonlySet<string>,
  path: readonly (string | number)[] = [],
): UnknownField[] =>
  Object.keys(value)
    .filter((name) => !known.has(name))
    .map((name) => ({
      name: [...path.map((step) => (typeof step === 'number' ? '*' : step)), fieldName(name)].join('/'),
      pointer: ['', ...path, pointerStep(name)].join('/'),
    }));

const maxFieldsListed = 20;

/** The value of `X-Ignored-Fields`: each name once; three dots stand for those left out. */
export function listFields(names: Iterable<string>): string {
  const listed = new Set<string>();
  for (const name of names) {
    if (listed.size === maxFieldsListed && !listed.has(name)) return `${[...listed].join(', ')}, ...`;
    listed.add(name);
  }
  return [...listed].join(', ');
}

/** A name, percent-encoded, for a header. */
const fieldName = (name: string): string => shorten(name, encodeURIComponent) || '""';

/** A name as a reference token of a JSON pointer (RFC 6901). */
export const pointerStep = (name: string): string =>
  shorten(name, (character) => pointerEscapes.get(character) ?? character);

const pointerEscapes = new Map([
  ['~', '~0'],
  ['/', '~1'],
]);

const maxName = 60;

/** The name with each character escaped, shortened to `maxName` without cutting an escape. */
function shorten(name: string, encode: (character: string) => string): string {
  let shortened = '';
  for (const character of name) {
    const next = encode(character);
    if (shortened.length + next.length > maxName) return `${shortened}...`;
    shortened += next;
  }
  return shortened;
}
