import { z } from 'zod';
import { bracketed, type Complaints, flag, json, maybeText, text } from '../shape.js';
import { unknownName, wrongType } from './errors.js';

const declaration = z.strictObject({
  name: text,
  description: maybeText,
  parametersJsonSchema: json.optional(),
});
const functionCallingConfig = z
  .strictObject({
    mode: z.enum(['AUTO', 'ANY', 'NONE', 'VALIDATED']),
    allowedFunctionNames: z.array(text).optional(),
  })
  .refine(({ mode, allowedFunctionNames: names }) => mode === 'ANY' || names === undefined);
const thinkingConfig = z.strictObject({ thinkingLevel: z.enum(['MINIMAL', 'LOW', 'MEDIUM', 'HIGH']) });

/** The fields of a body for tools, formats and thinking, as in Vertex AI's reference. */
export const bodyShape = z.looseObject({
  tools: z.array(z.strictObject({ functionDeclarations: z.array(declaration).min(1) })).optional(),
  toolConfig: z.strictObject({ functionCallingConfig }).optional(),
  generationConfig: z
    .looseObject({
      responseMimeType: z.enum(['text/plain', 'application/json']).optional(),
      responseJsonSchema: json.optional(),
      thinkingConfig: thinkingConfig.optional(),
    })
    .refine(
      ({ responseMimeType: type, responseJsonSchema: schema }) => !schema || type === 'application/json',
    )
    .optional(),
});

const dataFields = ['text', 'inlineData', 'functionCall', 'functionResponse'] as const;

/** The parts of a content, of which each has one of these fields. Calls have no ids: older models refuse those. */
export const partsShape = z.array(
  z
    .strictObject({
      text: maybeText,
      inlineData: z.strictObject({ mimeType: text, data: text }).optional(),
      functionCall: z.strictObject({ name: text, args: json.optional() }).optional(),
      functionResponse: z.strictObject({ name: text, response: json }).optional(),
      thoughtSignature: maybeText,
      thought: flag.optional(),
    })
    .refine((part) => dataFields.filter((field) => part[field] !== undefined).length === 1),
);

export type VertexBody = z.output<typeof bodyShape>;
export type VertexPart = z.output<typeof partsShape>[number];
export interface VertexContent {
  role: 'user' | 'model';
  parts: VertexPart[];
}

/** Vertex AI's words for fields of the wrong shape. */
export const vertexComplaints: Complaints = {
  unknown: (path) => unknownName(String(path.at(-1)), bracketed(path.slice(0, -1))),
  missing: (path) => wrongType(bracketed(path)),
  wrong: (path) => wrongType(bracketed(path)),
};
