import { type ProviderId, providerIds } from '../shared/contract.js';
import type { ChatCredentials } from './credentials.js';
import { toMakeReal } from './simulated-providers.js';

interface Facts {
  chatUrl: string;
  chatUrlAlt: string;
  origin: string;
  workerPort: number;
  /** Undefined when every provider is real. */
  simulatorUrl: string | undefined;
  simulated: ProviderId[];
  credentials: ChatCredentials;
  queue: string;
  database: string;
  logDir: string;
}

/** What `npm start` says once everything runs. */
export function banner(facts: Facts): string {
  const { chatUrl, chatUrlAlt, origin, workerPort, simulatorUrl, credentials } = facts;
  return `
Quillgate is up.

  Chat       ${chatUrl}   also ${chatUrlAlt}
  API docs   ${origin}/docs   and ${origin}/openapi.json
  Health     ${origin}/readyz   worker: http://localhost:${workerPort}/readyz
  Queue      ${facts.queue}
  Database   ${facts.database}
  Logs       ${facts.logDir}/

Providers
${providerIds.map((id) => describe(id, facts.simulated)).join('\n')}${
  simulatorUrl
    ? `\n  The simulator answers at ${simulatorUrl}; no model is called and nothing costs money.`
    : ''
}

Credentials
  User       ${credentials.username}
  Password   ${credentials.file ? `${credentials.password}   (kept in ${credentials.file})` : 'as set in the environment'}

Try it
${providerIds.map((id) => curl(id, facts)).join('\n')}

Ctrl-C stops everything; the data stays.
`;
}

function describe(id: ProviderId, simulated: ProviderId[]): string {
  return simulated.includes(id)
    ? `  ${id.padEnd(10)} simulated; to make it real set ${toMakeReal(id)}`
    : `  ${id.padEnd(10)} real`;
}

function curl(id: ProviderId, { chatUrl, credentials }: Facts): string {
  const user = credentials.file
    ? `${credentials.username}:${credentials.password}`
    : '"$CHAT_USERNAME:$CHAT_PASSWORD"';
  const body = `{"messages":[{"role":"user","content":"Hello, ${id}!"}]}`;
  return `  curl -u ${user} -H 'X-LLM: ${id}' -H 'Content-Type: application/json' -d '${body}' ${chatUrl}`;
}
