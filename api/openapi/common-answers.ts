import type { Operation } from './document.js';

/** The description of an answer, and its own header if it has one. */
type Described = readonly [description: string, header?: string];

const ofAll: Record<string, Described> = {
  400: ['Bad request'],
  401: ['No or wrong credentials', 'WWW-Authenticate'],
  403: ['The user is suspended, or the token lacks the scope', 'WWW-Authenticate'],
  405: ['Another method', 'Allow'],
  429: ['Too many failed logins', 'Retry-After'],
  500: ['Server error', 'Retry-After'],
};
const ofBodies: Record<string, Described> = {
  413: ['Body too large'],
  415: ['Not JSON'],
};

/** The errors that any operation may answer with, by status. */
export const commonAnswers = ({ hasBody }: { hasBody: boolean }): Readonly<Record<string, Described>> => ({
  ...ofAll,
  ...(hasBody && ofBodies),
});

/** Adds the errors that any operation may answer with, but for those that its controller describes. */
export function addCommonAnswers({ requestBody, responses }: Operation): void {
  for (const [status, answer] of Object.entries(commonAnswers({ hasBody: requestBody !== undefined })))
    responses[status] ??= toProblem(answer);
}

const toProblem = ([description, header]: Described): Operation['responses'][string] => ({
  description,
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Problem' } } },
  ...(header !== undefined && { headers: { [header]: { schema: { type: 'string' } } } }),
});
