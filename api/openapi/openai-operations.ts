import { z } from 'zod';
import type { Document, Operation, Schema } from './document.js';

/** Below this path is OpenAI's API. */
export const openAiPath = '/v1/';

/** Adds to the operations of OpenAI's API the body, which another schema than the generated one checks, and headers. */
export function describeOpenAi({ paths, components }: Document, completion: z.ZodObject): void {
  components.schemas.ChatCompletionRequest = toOpenApi(completion);
  const content = { 'application/json': { schema: { $ref: '#/components/schemas/ChatCompletionRequest' } } };
  for (const [path, operations] of Object.entries(paths)) {
    if (!path.startsWith(openAiPath)) continue;
    for (const [method, operation] of Object.entries(operations))
      describeErrors(operation, { isChat: method === 'post' });
    if (operations.post === undefined) continue;
    operations.post.requestBody = { required: true, content };
    // Of a chat: only its text is written differently.
    for (const status of ['200', '202'])
      Object.assign(operations.post.responses[status] ?? {}, {
        headers: paths['/chat']?.post?.responses[status]?.headers,
      });
  }
}

const text = { type: 'string' };
/** Refused before anything of the chat is known. */
const refusedEarly: ReadonlySet<string> = new Set(['401', '403', '405', '415']);
const chatHeaders = {
  'Preference-Applied': { schema: text },
  'X-Ignored-Fields': { schema: text },
  'Idempotency-Replayed': { schema: text },
  'Content-Location': { schema: text },
  'X-LLM-Attempts': { schema: text },
};

function describeErrors({ responses }: Operation, { isChat }: { isChat: boolean }): void {
  for (const [status, answer] of Object.entries(responses)) {
    if (status < '400') continue;
    const isLimited = status === '429' || status >= '500';
    answer.headers = {
      ...answer.headers,
      'x-should-retry': {
        description: '`true` or `false`: whether the clients of OpenAI try again by themselves.',
        schema: text,
      },
      ...(isChat && !refusedEarly.has(status) && chatHeaders),
      ...(isLimited && {
        'Retry-After': { schema: text },
        'retry-after-ms': { description: 'As `Retry-After`, in milliseconds.', schema: text },
      }),
      ...(['401', '403'].includes(status) && { 'WWW-Authenticate': { schema: text } }),
      ...(status === '405' && { Allow: { schema: text } }),
    };
  }
}

/** The schema of what may be sent. */
export const toOpenApi = (checked: z.ZodObject): Schema =>
  z.toJSONSchema(checked, {
    target: 'openapi-3.0',
    io: 'input',
    override: ({ jsonSchema }) => spellNull(jsonSchema as Schema),
  }) as Schema;

/** As OpenAPI 3.0.3 wants it (clarification of 2019-10): an enum lists `null`, and only typed schemas are nullable. */
function spellNull(schema: Schema): void {
  if (!schema.nullable) return;
  if (schema.enum) schema.enum = [...new Set([...schema.enum, null])];
  const options = schema.anyOf ?? schema.oneOf;
  if (!options || schema.type) return;
  // Null fits each of them, and so not one alone.
  schema.anyOf = options.map((each) => ({ ...each, nullable: true }));
  for (const option of schema.anyOf) spellNull(option);
  delete schema.oneOf;
  delete schema.nullable;
}
