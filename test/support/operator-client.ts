import type { ChatApp } from './chat-app.js';

interface OperatorRequest {
  method?: string;
  path: string;
  /** Sent as JSON. */
  body?: unknown;
  token?: string;
}

/** Sends a request as an operator would, with a token. */
export const asOperator = (
  { url }: Pick<ChatApp, 'url'>,
  { method = 'GET', path, body, token = 'operator' }: OperatorRequest,
): Promise<Response> =>
  fetch(`${url}${path}`, {
    method,
    headers: {
      Authorization: `Bearer ${token}`,
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
