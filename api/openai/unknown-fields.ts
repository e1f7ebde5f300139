import type { Request as HttpRequest, Response as HttpResponse } from 'express';
import { Failure } from '../../shared/failures.js';
import { fieldName, listFields, pointerStep } from '../http/ignored-fields.js';
import { prefersStrict } from '../http/prefer.js';
import { maxErrorsListed } from '../http/validation.js';
import { knownFields } from './completion-body.js';

interface UnknownField {
  /** As in `X-Ignored-Fields`. */
  readonly name: string;
  readonly pointer: string;
}

/**
 * Names the fields that this server does not know in `X-Ignored-Fields`, or refuses them with `Prefer: handling=strict`. The body has been
 * parsed.
 */
export function markUnknownFields(request: HttpRequest, response: HttpResponse): void {
  const unknown = findUnknown(request.body);
  if (unknown.length === 0) return;
  if (prefersStrict(request.get('Prefer'))) throw refusal(unknown);
  response.set('X-Ignored-Fields', listFields(unknown.map(({ name }) => name)));
}

const refusal = (unknown: readonly UnknownField[]): Failure =>
  new Failure('invalid_request', {
    detail: 'The request has a field that this server does not know.',
    errors: unknown
      .slice(0, maxErrorsListed)
      .map(({ pointer }) => ({ pointer, detail: 'is not a field of a chat completion' })),
  });

/** All of them; the limit on a body's values bounds them. */
function findUnknown(body: object): UnknownField[] {
  const { stream_options: streamOptions, messages } = body as { stream_options?: object; messages: object[] };
  return [
    ...unknownIn(body, knownFields.body),
    ...unknownIn(streamOptions ?? {}, knownFields.streamOptions, {
      name: 'stream_options/',
      pointer: '/stream_options',
    }),
    ...messages.flatMap((message, place) => unknownInMessage(message, `/messages/${place}`)),
  ];
}

function unknownInMessage(message: object, pointer: string): UnknownField[] {
  const { content } = message as { content: string | object[] };
  const parts = typeof content === 'string' ? [] : content;
  return [
    ...unknownIn(message, knownFields.message, { name: 'messages/*/', pointer }),
    ...parts.flatMap((part, place) =>
      unknownIn(part, knownFields.part, {
        name: 'messages/*/content/*/',
        pointer: `${pointer}/content/${place}`,
      }),
    ),
  ];
}

const unknownIn = (
  value: object,
  known: ReadonlySet<string>,
  prefix: UnknownField = { name: '', pointer: '' },
): UnknownField[] =>
  Object.keys(value)
    .filter((name) => !known.has(name))
    .map((name) => ({
      name: `${prefix.name}${fieldName(name)}`,
      pointer: `${prefix.pointer}/${pointerStep(name)}`,
    }));
