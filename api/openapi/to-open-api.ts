import { z } from 'zod';
import type { Schema } from './document.js';

/** The schema of what may be sent. */
export const toOpenApi = (checked: z.ZodObject): Schema =>
  z.toJSONSchema(checked, {
    target: 'openapi-3.0',
    io: 'input',
    override: ({ jsonSchema }) => spellNull(jsonSchema as Schema),
  }) as Schema;

/** Writes null for OpenAPI 3.0.3 (clarification of 2019-10): an enum lists it, and only typed schemas are nullable. */
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
