import type { Response as HttpResponse } from 'express';
import type { z } from 'zod';
import type { Config } from '../../shared/config/config.js';
import type { ListedModel } from '../../shared/fleet/fleet.js';
import type { AuthenticatedRequest } from '../access/caller.js';
import type { ChatService } from '../chat/chat-service.js';
import type { BodyLimits } from '../http/json-body.js';
import type { SendFailure } from '../http/problem.js';
import type { Operation as OpenApiOperation, Schema } from '../openapi/docs.js';

/**
 * An API that others have defined, such as OpenAI's chat completions. Routes, errors, CORS, counts, the front page and
 * the OpenAPI document read the array of them (`chat-apis.ts`).
 */
export interface ChatApi {
  /** Its group in the OpenAPI document, and its link on the front page. */
  readonly name: string;
  /** For people, as is `about`. */
  readonly title: string;
  readonly about: string;
  /** The description of its group in the OpenAPI document. */
  readonly description: string;
  /** Failures below these paths are sent by `sendFailure`; the longest path counts. */
  readonly roots: readonly string[];
  readonly sendFailure: SendFailure;
  /** A header in which its operations take an access token from a request without `Authorization`. */
  readonly apiKeyHeader?: 'x-api-key';
  /** The operation that begins chats comes first. */
  readonly operations: readonly Operation[];
  /** The schemas that `openApi` of its operations refers to, with examples; added to what the generator has of them. */
  readonly schemas: Readonly<Record<string, Schema | z.ZodObject>>;
}

/** One method at one address. Callers show a user's name and secret, or an access token with the scope `chat`. */
export interface Operation {
  readonly method: 'get' | 'post' | 'delete';
  /** In Express's words, such as `/v1/models/*id`. */
  readonly path: string;
  /** Whether its requests are counted as chats; operators find it below `/admin`, too. */
  readonly beginsChat?: boolean;
  /** The same as its API's, for an operation that the clients of several APIs use. */
  readonly apiKeyHeader?: ChatApi['apiKeyHeader'];
  /** Limits of its JSON body; absent means that it has none. */
  readonly body?: (config: Config) => Pick<BodyLimits, 'maxBytes' | 'maxDepth' | 'digits'>;
  readonly openApi: OpenApiOperation;
  /** Answers the request. Failures that it throws are sent as those of its API. */
  readonly handle: (
    request: AuthenticatedRequest,
    response: HttpResponse,
    deps: ChatApiDeps,
  ) => Promise<void> | void;
}

/** The parts of the application that operations need. */
export interface ChatApiDeps {
  readonly config: Config;
  readonly chatService: Pick<ChatService, 'createChat'>;
  /** The models that callers may name. */
  readonly models: () => readonly ListedModel[];
}
