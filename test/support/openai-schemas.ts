import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';

const schema = JSON.parse(
  readFileSync(new URL('./schemas/chat-completion.json', import.meta.url), 'utf8'),
) as object;
const ajv = new Ajv({ allowUnionTypes: true }).addSchema(schema, 'openai');
const check = (name: string) => (value: unknown) =>
  ajv.validate(`openai#/definitions/${name}`, value) === true;

/** Whether OpenAI's schema has such a chat completion, and such a chunk of one. */
export const isCompletionOfOpenAi = check('completion');
export const isChunkOfOpenAi = check('chunk');
