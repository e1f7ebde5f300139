import type { Answer, Schema } from '../openapi/docs.js';
import { commonAnswers } from '../openapi/openapi.js';

/** The parts of which the APIs describe themselves in the OpenAPI document. */

/** JSON of the schema with this name. */
export const jsonOf = (schema: string): Record<string, { schema: unknown }> => ({
  'application/json': { schema: { $ref: `#/components/schemas/${schema}` } },
});

/** A text field. */
export const textOf = (description: string): Schema => ({ type: 'string', description });

/** An object with all of these fields, and maybe with others. */
export const objectOf = (
  description: string,
  { properties, ...own }: Schema & Required<Pick<Schema, 'properties'>>,
): Schema => ({
  ...own,
  description,
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: true,
});

type Headers = NonNullable<Answer['headers']>;

const text = { schema: { type: 'string' } };
const chatHeaders: Headers = {
  'Preference-Applied': text,
  'X-Ignored-Fields': text,
  'Idempotency-Replayed': text,
  'Content-Location': text,
  'X-LLM-Attempts': text,
};
/** Refused before anything of the chat is known. */
const refusedEarly: ReadonlySet<string> = new Set(['401', '403', '405', '415']);

/** The errors of an operation with this schema: those that all have, and its own by status. `isChat` unless not. */
export function errorAnswersOf(
  schema: string,
  own: Readonly<Record<string, string>>,
  { isChat = true }: { isChat?: boolean } = {},
): Record<string, Answer> {
  const common = Object.entries(commonAnswers({ hasBody: isChat })).map(([status, [description]]) => [
    status,
    description,
  ]);
  const descriptions: Record<string, string> = { ...Object.fromEntries(common), ...own };
  return Object.fromEntries(
    Object.entries(descriptions).map(([status, description]) => {
      const isLimited = status === '429' || status >= '500';
      const headers: Headers = {
        'x-should-retry': {
          description: '`true` or `false`: whether clients try again by themselves.',
          ...text,
        },
        ...(isChat && !refusedEarly.has(status) && chatHeaders),
        ...(isLimited && {
          'Retry-After': text,
          'retry-after-ms': { description: 'As `Retry-After`, in milliseconds.', ...text },
        }),
        ...(['401', '403'].includes(status) && { 'WWW-Authenticate': text }),
        ...(status === '405' && { Allow: text }),
      };
      return [status, { description, headers, content: jsonOf(schema) }];
    }),
  );
}

/** A header that a request may have. */
export const header = (name: string, description: string, schema: Schema = { type: 'string' }) => ({
  description,
  in: 'header',
  name,
  required: false,
  schema,
});
