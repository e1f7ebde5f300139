import type { ProviderId } from '../../../shared/contracts/contract.js';
import { addUser, createToken } from '../../support/accounts.js';
import { quillgate } from '../../support/command-line.js';
import type { ChatReply, Deployment } from '../../support/deployment.js';
import { readEvents } from '../../support/event-streams.js';

/** Credentials, where they are good, and what ends them. */
export interface Access {
  readonly path: '/chat' | '/v1/chat/completions' | '/admin/chat';
  readonly headers: Record<string, string>;
  end(): Promise<unknown>;
}

const admin = { name: 'ada', secret: 'canary-of-the-console-secret-37' };
/** The variables that `accesses.session` needs. */
export const adminVariables = { ADMIN_USERNAME: admin.name, ADMIN_PASSWORD: admin.secret };

const run = ({ stores: { DATABASE_URL = '' } }: Deployment, ...command: string[]) =>
  quillgate(command, { DATABASE_URL });

/** Ways to get an access. */
export const accesses = {
  user: async (deployment: Deployment): Promise<Access> => {
    const headers = { Authorization: await addUser(deployment, 'leaving') };
    return { path: '/chat', headers, end: () => run(deployment, 'users', 'remove', 'leaving') };
  },
  token: async (deployment: Deployment): Promise<Access> => {
    const { id, token } = await createToken(deployment, 'chat');
    const headers = { Authorization: `Bearer ${token}` };
    return { path: '/v1/chat/completions', headers, end: () => run(deployment, 'tokens', 'revoke', id) };
  },
  session: async ({ url }: Deployment): Promise<Access> => {
    const json = { 'Content-Type': 'application/json', 'Sec-Fetch-Site': 'same-origin' };
    const session = `${url}/admin/session`;
    const response = await fetch(session, { method: 'POST', headers: json, body: JSON.stringify(admin) });
    const [Cookie = ''] = response.headers.getSetCookie()[0]?.split(';') ?? [];
    const headers = { Cookie, 'Sec-Fetch-Site': 'same-origin' };
    const end = () => fetch(session, { method: 'DELETE', headers: { ...json, Cookie } });
    return { path: '/admin/chat', headers, end };
  },
};

/** A request with an access; `begun` is called when its response begins. */
export interface AccessCall {
  readonly url: string;
  readonly provider: ProviderId;
  readonly model: string;
  readonly isStream?: boolean;
  readonly isStored?: boolean;
  readonly onBegun?: () => void;
}

/** Asks for a chat; the body of `/v1` says the model, and whether it is a stream. Gives the last event of a stream. */
export async function askWith({ path, headers }: Access, call: AccessCall): Promise<ChatReply> {
  const { url, provider, model, isStream, isStored, onBegun = () => undefined } = call;
  const messages = [{ role: 'user', content: 'Hello' }];
  const body = path.startsWith('/v1')
    ? { messages, model: `${provider}/${model}`, stream: isStream }
    : { messages };
  const response = await fetch(url + path, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      'X-LLM': provider,
      'X-LLM-Model': model,
      ...(isStream && { Accept: 'text/event-stream' }),
      ...(isStored && { Prefer: 'respond-async' }),
      ...headers,
    },
    body: JSON.stringify(body),
  });
  onBegun();
  const { status, headers: answered } = response;
  const last = isStream && status === 200 ? await lastOf(response) : await response.json();
  // OpenAI's clients find an error in an object of its own.
  const { error, ...plain } = last as ChatReply['body'] & { error?: ChatReply['body'] };
  const problem = error ?? plain;
  return {
    status: status === 200 && problem.code !== undefined ? 500 : status,
    headers: answered,
    body: problem,
    tookMs: 0,
  };
}

async function lastOf(stream: Response): Promise<unknown> {
  let last: unknown;
  for await (const { data } of readEvents(stream)) last = data;
  return last;
}
