import type { Operation } from './document.js';
import { openAiPath } from './openai-operations.js';

/** The description of an answer, and its own header if it has one. */
type Answer = readonly [description: string, header?: string];

const ofAll: Record<string, Answer> = {
  400: ['Bad request'],
  401: ['No or wrong credentials', 'WWW-Authenticate'],
  403: ['The user is suspended, or the token lacks the scope', 'WWW-Authenticate'],
  405: ['Another method', 'Allow'],
  429: ['Too many failed logins', 'Retry-After'],
  500: ['Server error', 'Retry-After'],
};
const ofBodies: Record<string, Answer> = {
  413: ['Body too large'],
  415: ['Not JSON'],
};

/** Adds the errors that any such operation may answer with, but for those that its controller describes. */
export function addCommonAnswers(path: string, { requestBody, responses }: Operation): void {
  const answers = { ...ofAll, ...(requestBody && ofBodies) };
  const isOpenAi = path.startsWith(openAiPath);
  for (const [status, answer] of Object.entries(answers))
    responses[status] ??= isOpenAi ? toOpenAiError(answer) : toProblem(answer);
}

const toProblem = ([description, header]: Answer): object => ({
  description,
  content: contentOf('Problem'),
  ...(header !== undefined && { headers: { [header]: { schema: { type: 'string' } } } }),
});

/** Its headers are described with all others of OpenAI's API. */
const toOpenAiError = ([description]: Answer): object => ({
  description,
  content: contentOf('OpenAiError'),
});

const contentOf = (schema: string) => ({
  'application/json': { schema: { $ref: `#/components/schemas/${schema}` } },
});
