import type { Request as HttpRequest, Response as HttpResponse } from 'express';
import type { ProviderId } from '../../shared/contract.js';
import { Failure } from '../../shared/failures.js';
import { maxErrorsListed } from '../../shared/validation.js';
import type { ChatCommand } from '../chat/chat-command.js';
import { listFields, type UnknownField, unknownFieldsOf } from '../http/ignored-fields.js';
import { prefersStrict } from '../http/prefer.js';
import { knownFields } from './completion-body.js';
import { ignoredFieldsOf } from './completion-request.js';

/** The parameters of a chat, and the providers that may get them. */
type Asked = Pick<ChatCommand, 'provider' | 'parameters' | 'fallback'>;

/**
 * Returns a function that names in `X-Ignored-Fields` what a provider's answer ignores: fields that this server does
 * not know, and hints that the provider does not take. With `Prefer: handling=strict` it throws for both, and for hints
 * that a fallback would be asked without. The body has been parsed.
 */
export function markIgnoredFields(request: HttpRequest, asked: Asked): (writer: ProviderId) => void {
  const response = request.res as HttpResponse;
  const unknown = findUnknown(request.body);
  if (prefersStrict(request.get('Prefer'))) refuse(unknown, asked);
  const mark = (writer: ProviderId) => {
    const names = [...unknown.map(({ name }) => name), ...ignoredFieldsOf(writer, asked.parameters)];
    if (names.length > 0) response.set('X-Ignored-Fields', listFields(names));
    else response.removeHeader('X-Ignored-Fields');
  };
  mark(asked.provider);
  return mark;
}

function refuse(unknown: readonly UnknownField[], { provider, parameters, fallback = [] }: Asked): void {
  const providers = [provider, ...fallback.map((target) => target.provider)];
  const untaken = providers.flatMap((each) =>
    ignoredFieldsOf(each, parameters).map((name) => ({
      pointer: `/${name}`,
      detail: `is not taken by ${each}`,
    })),
  );
  const detail = 'is not a field of a chat completion';
  const errors = [...unknown.map(({ pointer }) => ({ pointer, detail })), ...untaken].slice(
    0,
    maxErrorsListed,
  );
  // The message must not repeat names that the caller has chosen.
  const summary = unknown.length > 0 && { detail: 'The request has a field that this server does not know.' };
  if (errors.length > 0) throw new Failure('invalid_request', { ...summary, errors });
}

function findUnknown(body: object): UnknownField[] {
  const { stream_options: streamOptions, messages } = body as { stream_options?: object; messages: object[] };
  return [
    ...unknownFieldsOf(body, knownFields.body),
    ...unknownFieldsOf(streamOptions ?? {}, knownFields.streamOptions, ['stream_options']),
    ...messages.flatMap((message, place) => unknownInMessage(message, ['messages', place])),
  ];
}

function unknownInMessage(message: object, path: readonly (string | number)[]): UnknownField[] {
  const { content } = message as { content: string | object[] };
  const parts = typeof content === 'string' ? [] : content;
  return [
    ...unknownFieldsOf(message, knownFields.message, path),
    ...parts.flatMap((part, place) => unknownFieldsOf(part, knownFields.part, [...path, 'content', place])),
  ];
}
