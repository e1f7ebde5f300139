/** The parts of an OpenAPI 3.0 document that are completed here. */
export interface Document {
  info: Info;
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
}

export interface Info {
  version: string;
  description: string;
}

export interface Operation {
  operationId: string;
  summary?: string;
  description?: string;
  security?: Record<string, string[]>[];
  parameters?: { name: string; in: string; description?: string; required?: boolean; schema: Schema }[];
  requestBody?: { required?: boolean; content?: Record<string, unknown> };
  responses: Record<string, Answer>;
}

export interface Answer {
  description?: string;
  headers?: Record<string, { required?: boolean; description?: string; schema?: unknown }>;
  content?: Record<string, { schema: unknown }>;
}

export interface Schema {
  description?: string;
  type?: string;
  format?: string;
  required?: string[];
  nullable?: boolean;
  enum?: unknown[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  $ref?: string;
  allOf?: { $ref: string }[];
  additionalProperties?: boolean;
  example?: unknown;
}
