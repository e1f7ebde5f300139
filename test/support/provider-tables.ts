import { isDeepStrictEqual } from 'node:util';
import { type ProviderId, providerIds } from '../../shared/contracts/contract.js';
import type { ImagePart, ImageType } from '../../shared/conversation.js';
import { fitSchema } from '../../shared/models/json-schema.js';
import { type JsonSchema, type ModelParameters } from '../../shared/models/model-parameters.js';
import { findUnsupported, ignoredHints, unsupportedReason } from '../../shared/models/provider-support.js';
import { UnfitSchema } from '../../shared/models/schema-bounds.js';

/** The tables of docs/tools.md: samples of requests, and what the code that decides says to each of them. */

const tool = { name: 'look', parameters: { type: 'object', properties: {} } };
const schema = { type: 'object', properties: {}, additionalProperties: false };
const format = { type: 'json_schema', name: 'answer', schema } as const;

/** Fields of a request, as OpenAI's API writes them, and as ours has them. */
const fields: [text: string, parameters: ModelParameters][] = [
  ['`tools`', { tools: [tool] }],
  ['`strict: true` of a tool', { tools: [{ ...tool, strict: true }] }],
  ['`tool_choice`: `none`', { tools: [tool], toolChoice: 'none' }],
  ['`tool_choice`: `required`', { tools: [tool], toolChoice: 'required' }],
  ['`tool_choice`: one tool', { tools: [tool], toolChoice: { name: 'look' } }],
  ['`parallel_tool_calls: false`', { tools: [tool], parallelToolCalls: false }],
  ['`response_format`: `json_schema`', { format }],
  ['`response_format`: `json_object`', { format: { type: 'json_object' } }],
  ['`temperature` up to 1', { temperature: 0.5 }],
  ['`temperature` above 1', { temperature: 1.5 }],
  ['`top_p`', { topP: 0.5 }],
  ['`seed`, 32 bits', { seed: 7 }],
  ['`seed`, longer', { seed: 2 ** 40 }],
  ['`frequency_penalty`, `presence_penalty` below 2', { frequencyPenalty: 1.9, presencePenalty: 1.9 }],
  ['`frequency_penalty`, `presence_penalty` of 2', { frequencyPenalty: 2, presencePenalty: 2 }],
  ['`reasoning_effort`: `none`', { reasoningEffort: 'none' }],
  ['`reasoning_effort`: `minimal`', { reasoningEffort: 'minimal' }],
  ['`reasoning_effort`: `low`, `medium`, `high`', { reasoningEffort: 'low' }],
  ['`reasoning_effort`: `xhigh`, `max`', { reasoningEffort: 'max' }],
  ['`verbosity`', { verbosity: 'low' }],
  ['`max_completion_tokens`, `max_tokens`', { maxOutputTokens: 100 }],
  ['`stop`', { stop: ['.'] }],
  ['`stop` of white space alone', { stop: [' '] }],
];

/** Which provider takes which field, without a column for a provider that takes all. */
export function fieldTable(): string {
  const columns = providerIds
    .map((id) => ({ id, cells: fields.map(([, parameters]) => answerTo(id, parameters)) }))
    .filter(({ cells }) => !areAllTaken(cells));
  return tableOf(
    ['fields', ...columns.map(({ id }) => id)],
    fields.map(([text], row) => [text, ...columns.map(({ cells }) => cells[row] ?? '')]),
  );
}

const areAllTaken = (cells: readonly string[]): boolean => cells.every((cell) => cell === 'yes');

function answerTo(provider: ProviderId, parameters: ModelParameters): string {
  if (findUnsupported(provider, parameters)) return '400';
  return ignoredHints(provider, parameters).length > 0 ? 'left out' : 'yes';
}

const text = { type: 'string' };
const number = { type: 'integer' };
const list = { type: 'array', items: text };
const closed = (properties: object, more: object = {}) => ({
  ...{ type: 'object', properties, required: Object.keys(properties), additionalProperties: false },
  ...more,
});
const inField = (value: object, more: object = {}): JsonSchema => closed({ field: value }, more);

/** Keywords of a JSON Schema, each in the schema of a field. */
const keywords: [text: string, schema: JsonSchema][] = [
  ['`type`, `properties`, `required`, `items`, `description`', inField({ ...list, description: 'Names' })],
  ['a list of types', inField({ type: ['string', 'null'] })],
  ['a schema without a type', inField({})],
  ['`enum`', inField({ ...text, enum: ['a', 'b'] })],
  ['`const`', inField({ const: 'a' })],
  ['`default`', inField({ ...text, default: 'a' })],
  ['`anyOf`', inField({ anyOf: [text, number] })],
  ['`oneOf`', inField({ oneOf: [text, number] })],
  ['`enum` with `null`', inField({ type: ['string', 'null'], enum: ['a', null] })],
  ['`enum` with `""`', inField({ ...text, enum: ['', 'a'] })],
  ['`enum` without values, or of `""` alone', inField({ ...text, enum: [] })],
  ['`required` of a name that is no property', closed({}, { required: ['a'] })],
  ['`type: array` without `items`', inField({ type: 'array' })],
  ['`allOf` of what can be one schema', inField({ allOf: [text, { title: 'Name' }] })],
  [
    '`allOf` of a reference and properties',
    inField({ allOf: [{ $ref: '#/$defs/name' }, closed({ a: text })] }, { $defs: { name: closed({}) } }),
  ],
  ['`properties` beside `anyOf` of objects', inField(closed({ a: text }, { anyOf: [closed({ b: text })] }))],
  ['`$ref` to `$defs`', inField({ $ref: '#/$defs/name' }, { $defs: { name: text } })],
  [
    '`$ref` to a schema that contains it',
    inField({ $ref: '#/$defs/node' }, { $defs: { node: closed({ next: { $ref: '#/$defs/node' } }) } }),
  ],
  ['`minimum`, `maximum`', inField({ ...number, minimum: 1, maximum: 9 })],
  [
    '`exclusiveMinimum`, `exclusiveMaximum`',
    inField({ ...number, exclusiveMinimum: 1, exclusiveMaximum: 9 }),
  ],
  ['`multipleOf`', inField({ ...number, multipleOf: 2 })],
  ['`minLength`, `maxLength`', inField({ ...text, minLength: 1, maxLength: 9 })],
  ['`pattern`', inField({ ...text, pattern: '^[a-z]+$' })],
  ['`pattern` that looks around', inField({ ...text, pattern: '^(?=a)' })],
  ['`format: date-time`', inField({ ...text, format: 'date-time' })],
  ['`format: regex`', inField({ ...text, format: 'regex' })],
  ['`minItems` of 0 or 1', inField({ ...list, minItems: 1 })],
  ['`minItems` above 1', inField({ ...list, minItems: 2 })],
  ['`maxItems`', inField({ ...list, maxItems: 9 })],
  ['`uniqueItems`', inField({ ...list, uniqueItems: true })],
  ['`prefixItems`', inField({ ...list, prefixItems: [text] })],
  ['`additionalProperties: true`, or none', inField({ type: 'object', properties: {} })],
  ['`additionalProperties` of a schema', inField({ type: 'object', additionalProperties: text })],
  ['`patternProperties`', inField({ type: 'object', patternProperties: { '^x': text } })],
  ['`minProperties`, `maxProperties`', inField(closed({}, { minProperties: 0, maxProperties: 9 }))],
  ['`not`', inField({ ...text, not: { const: 'a' } })],
  ['`if`, `then`, `else`', inField({ ...text, if: { const: 'a' }, else: { const: 'b' } })],
];

const uses = ['format', 'strict-tool', 'tool'] as const;
const useNames = { format: 'formats', 'strict-tool': 'strict tools', tool: 'other tools' };

/** How each keyword is sent; providers and uses that treat all of them alike share a column, or have none for all. */
export function keywordTable(): string {
  const columns = providerIds.flatMap((provider) =>
    uses.map((use) => ({
      ...{ provider, use },
      cells: keywords.map(([, schema]) => fateOf(schema, { provider, use })),
    })),
  );
  const fitting = columns.filter(({ cells }) => !areAllTaken(cells));
  const groups = [...Map.groupBy(fitting, ({ cells }) => cells.join()).values()];
  return tableOf(
    ['keywords', ...groups.map(nameOf)],
    keywords.map(([text], row) => [text, ...groups.map(([first]) => first?.cells[row] ?? '')]),
  );
}

type Use = { provider: ProviderId; use: (typeof uses)[number] };

function fateOf(schema: JsonSchema, { provider, use }: Use): string {
  try {
    const fitted = fitSchema(provider, schema, use);
    if (fitted.moved.length > 0) return 'in words';
    return isDeepStrictEqual(fitted.schema, schema) ? 'yes' : 'changed';
  } catch (error) {
    if (error instanceof UnfitSchema) return '400';
    throw error;
  }
}

/** `openai; anthropic, bedrock: other tools`. */
function nameOf(group: readonly Use[]): string {
  const usesBy = Map.groupBy(group, ({ provider }) => provider);
  const providersBy = Map.groupBy(usesBy, ([, used]) => used.map(({ use }) => useNames[use]).join(', '));
  return [...providersBy]
    .map(([used, providers]) => {
      const names = providers.map(([provider]) => provider).join(', ');
      return used === Object.values(useNames).join(', ') ? names : `${names}: ${used}`;
    })
    .join('; ');
}

const imageTypes: ImageType[] = ['image/png', 'image/jpeg', 'image/webp', 'image/gif'];

/** Which provider takes which images, and of how many bytes. */
export const blobTable = (): string =>
  tableOf(
    ['image', ...providerIds],
    [
      ...imageTypes.map((type) => [
        type.replace('image/', ''),
        ...providerIds.map((id) => yes(takes(id, stored(type, 1)))),
      ]),
      ['largest, in bytes', ...providerIds.map((id) => largestImage(id).toLocaleString('en'))],
      [
        'an `https:` address, which the provider fetches',
        ...providerIds.map((id) => yes(takes(id, { type: 'image', url: 'https://example.org/a.png' }))),
      ],
    ],
  );

const stored = (mediaType: ImageType, bytes: number): ImagePart => ({
  ...{ type: 'image', mediaType, bytes, sha256: '0'.repeat(64) },
});

const takes = (provider: ProviderId, image: ImagePart): boolean =>
  unsupportedReason(provider, image) === undefined;

const yes = (isTaken: boolean): string => (isTaken ? 'yes' : '400');

/** The size of the largest image that is taken, found by halving. */
function largestImage(provider: ProviderId): number {
  let [taken, refused] = [1, 2 ** 30];
  while (refused - taken > 1) {
    const middle = Math.floor((taken + refused) / 2);
    if (takes(provider, stored('image/png', middle))) taken = middle;
    else refused = middle;
  }
  return taken;
}

/** A table of Markdown, in which rows of the same answers are one. */
function tableOf(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const alike = [...Map.groupBy(rows, ([, ...answers]) => answers.join()).values()];
  const merged = alike.map((group) => {
    const [, ...answers] = group[0] ?? [];
    return [group.map(([text]) => text).join('; '), ...answers];
  });
  const lines = [head, head.map(() => '---'), ...merged];
  return lines
    .map((cells) => `| ${cells.join(' | ')} |\n`)
    .join('')
    .replace(/^\| -.*$/m, (line) => line.replaceAll(' ', ''));
}
