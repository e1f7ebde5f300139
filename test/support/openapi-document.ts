import { Ajv, type ValidateFunction } from 'ajv';
import formats from 'ajv-formats';

/** The parts of the OpenAPI 3.0 document that the runs look at. */
export interface OpenApiDocument {
  /** Under each path its operations by method, and `servers`. */
  paths: Record<string, Record<string, OperationObject | object[]>>;
  components: { schemas: Record<string, unknown>; securitySchemes: Record<string, unknown> };
}

export interface OperationObject {
  operationId: string;
  security: Record<string, string[]>[];
  parameters: { name: string; in: string; required?: boolean; schema: unknown }[];
  requestBody?: { content: Record<string, unknown> };
  responses: Record<string, ResponseObject>;
}

interface ResponseObject {
  headers?: Record<string, { required?: boolean }>;
  content?: Record<string, unknown>;
}

/** One operation of the document. */
export interface DescribedOperation {
  readonly method: string;
  readonly path: string;
  readonly responses: Record<string, ResponseObject>;
  /** Whether it has a body at all. */
  readonly takesBody: boolean;
  /** Whether its schema takes a body of this media type. */
  acceptsBody(mediaType: string, value: unknown): boolean;
  /** Whether its schema takes the value of a query parameter; undefined for a parameter it does not know. */
  acceptsParameter(name: string, value: unknown): boolean | undefined;
  /** The error of an answer's body; undefined without one. */
  faultOf(status: number, mediaType: string, value: unknown): string | undefined;
}

/** An operation and where it stands. */
export interface PlacedOperation {
  readonly method: string;
  readonly path: string;
  readonly operation: OperationObject;
}

/** Every operation of the document. */
export const operationsOf = ({ paths }: OpenApiDocument): PlacedOperation[] =>
  Object.entries(paths).flatMap(([path, members]) =>
    Object.entries(members).flatMap(([method, operation]) =>
      Array.isArray(operation) ? [] : [{ path, method, operation }],
    ),
  );

/** Makes the document's schemas usable: every operation by its id. */
export function readDocument(document: OpenApiDocument): Map<string, DescribedOperation> {
  const ajv = new Ajv({ strict: false, validateSchema: false });
  formats.default(ajv);
  ajv.addSchema(toJsonSchema(document) as object, 'api');
  return new Map(
    operationsOf(document).map((placed) => [placed.operation.operationId, describe(ajv, placed)]),
  );
}

function describe(ajv: Ajv, { method, path, operation }: PlacedOperation): DescribedOperation {
  const { responses, parameters } = operation;
  const schemaAt = (...steps: (string | number)[]): ValidateFunction => {
    const pointer = ['paths', path, method, ...steps].map(toPointerStep).join('');
    return ajv.getSchema(`api#${pointer}`) ?? ajv.compile({ $ref: `api#${pointer}` });
  };
  return {
    method: method.toUpperCase(),
    path,
    responses,
    takesBody: operation.requestBody !== undefined,
    acceptsBody: (mediaType, value) => schemaAt('requestBody', 'content', mediaType, 'schema')(value),
    acceptsParameter: (name, value) => {
      const index = parameters.findIndex((parameter) => parameter.in === 'query' && parameter.name === name);
      return index < 0 ? undefined : schemaAt('parameters', index, 'schema')(value);
    },
    faultOf: (status, mediaType, value) => {
      const validate = schemaAt('responses', status, 'content', mediaType, 'schema');
      return validate(value) ? undefined : ajv.errorsText(validate.errors);
    },
  };
}

/** The headers that an answer has although the document names them for other answers of the operation alone. */
export function undescribedHeaders(
  responses: Record<string, ResponseObject>,
  { status, headers }: { status: number; headers: object },
): string[] {
  const namesOf = ({ headers: described = {} }: ResponseObject) => Object.keys(described);
  const here = new Set(namesOf(responses[status] ?? {}));
  const names = new Set(Object.values(responses).flatMap(namesOf));
  return [...names].filter((name) => !here.has(name) && name.toLowerCase() in headers);
}

const toPointerStep = (step: string | number): string =>
  `/${encodeURIComponent(String(step).replaceAll('~', '~0').replaceAll('/', '~1'))}`;

/** OpenAPI 3.0 says `nullable` where JSON Schema says `null` among the types. */
function toJsonSchema(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(toJsonSchema);
  if (typeof node !== 'object' || node === null) return node;
  const { nullable, ...schema } = Object.fromEntries(
    Object.entries(node).map(([key, value]) => [key, toJsonSchema(value)]),
  );
  return nullable === true ? { anyOf: [schema, { type: 'null' }] } : schema;
}
