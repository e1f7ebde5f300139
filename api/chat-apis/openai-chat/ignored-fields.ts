import type { Request as HttpRequest, Response as HttpResponse } from 'express';
import type { ProviderId } from '../../../shared/contracts/contract.js';
import { findUnsupported } from '../../../shared/models/provider-support.js';
import { invalidRequest } from '../../../shared/validation.js';
import type { ChatCommand } from '../../chat/chat-command.js';
import { listFields, type UnknownField, unknownFieldsOf } from '../../http/ignored-fields.js';
import { prefersStrict } from '../../http/prefer.js';
import { type CompletionBody, unservedFields } from './completion-body.js';
import { ignoredFieldsOf } from './completion-request.js';

/** The parameters of a chat, the providers that may get them, and the body as it was read. */
type Asked = Pick<ChatCommand, 'provider' | 'parameters' | 'fallback'> & { body: CompletionBody };

/** `refused` are our names of hints that the model was asked without, because it refused them. */
export type MarkIgnored = (writer: ProviderId, refused?: readonly string[]) => void;

/**
 * Returns a function that names in `X-Ignored-Fields` what a provider's answer ignores: fields that this server does
 * not know or serve, and hints that the provider does not take. With `Prefer: handling=strict` it throws for all of
 * them, and for hints that a fallback would be asked without. The body has been parsed.
 */
export function markIgnoredFields(request: HttpRequest, asked: Asked): MarkIgnored {
  const response = request.res as HttpResponse;
  const unknown = findUnknown(request.body, asked.body);
  const unserved = unservedFields(asked.body);
  if (prefersStrict(request.get('Prefer'))) refuse(unknown, asked);
  const mark: MarkIgnored = (writer, refused) => {
    const hints = ignoredFieldsOf(writer, asked.parameters, refused);
    const names = [...unknown.map(({ name }) => name), ...unserved, ...hints];
    if (names.length > 0) response.set('X-Ignored-Fields', listFields(names));
    else response.removeHeader('X-Ignored-Fields');
  };
  mark(asked.provider);
  return mark;
}

function refuse(unknown: readonly UnknownField[], asked: Asked): void {
  const { provider, parameters, fallback = [], body } = asked;
  const providers = [provider, ...fallback.map((target) => target.provider)];
  // One that cannot do it at all is not asked.
  const able = providers.filter((each) => !findUnsupported(each, parameters));
  const unsupported = able.flatMap((each) =>
    ignoredFieldsOf(each, parameters).map((name) => {
      const [field, ...part] = name.split('.');
      const what = part.length > 0 ? `has ${part.join('.')}, which is` : 'is';
      return { pointer: `/${field}`, detail: `${what} not taken by ${each}` };
    }),
  );
  const errors = [
    ...unknown.map(({ pointer }) => ({ pointer, detail: 'is not a field of a chat completion' })),
    ...unservedFields(body).map((name) => ({ pointer: `/${name}`, detail: 'is not supported here' })),
    ...unsupported,
  ];
  if (errors.length > 0) throw invalidRequest(errors);
}

/** The fields that were sent and not read: the schema leaves out those that it does not know. */
function findUnknown(sent: unknown, read: unknown, path: readonly (string | number)[] = []): UnknownField[] {
  if (sent === read || !isObject(sent) || !isObject(read)) return [];
  const isArray = Array.isArray(read);
  const unknown = isArray ? [] : unknownFieldsOf(sent, new Set(Object.keys(read)), path);
  const inner = Object.keys(sent)
    .filter((name) => Object.hasOwn(read, name))
    .flatMap((name) => findUnknown(sent[name], read[name], [...path, isArray ? Number(name) : name]));
  return [...unknown, ...inner];
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;
