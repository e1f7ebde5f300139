import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Config, type Environment, namesSet, parseConfig } from '../../shared/config/config.js';
import { poolConfig } from '../../shared/config/pool-config.js';
import { credentialVariables, hasCredentials } from '../../shared/config/provider-credentials.js';
import { type ProviderId, providerIds } from '../../shared/contracts/contract.js';
import { Failure } from '../../shared/failures.js';
import { readObject } from '../../shared/json/json.js';
import { hasCalls } from '../../shared/protocol/parts.js';
import { StartupError } from '../../shared/runtime/program.js';
import { describeFailure } from '../../workers/providers/errors/error-classification.js';
import type { Provider } from '../../workers/providers/provider.js';
import { connectingOf, openProvider } from '../../workers/providers/provider-settings.js';
import { readNames } from '../names.js';
import { type Conversation, conversations, nextTurns } from '../record/conversations.js';
import { RecordingHttp } from '../record/recording-http.js';

/** A reply costs no more than this, in tokens. */
const maxOutputTokens = 2000;
const maxCallMs = 600_000;
/** The model may ask for one city after the other. */
const maxRequests = 4;

/**
 * `quillgate record`: has the provider hold the conversations, whole and streamed, and writes each into a file of its
 * own, for comparison with the simulator (`test/release/recordings.test.ts`). Throws `StartupError` without credentials
 * or a model.
 */
export async function recordProvider(
  environment: Environment,
  name: string,
  { to = 'test/recordings' }: { to?: string } = {},
): Promise<void> {
  const [id = 'openai'] = readNames([name], providerIds, 'The provider must be one of');
  const config = parseConfig(environment, 'command');
  const model = readModel(config, id);
  const http = new RecordingHttp(config.PROVIDER_MAX_RESPONSE_BYTES, {
    ...connectingOf(config),
    secrets: secretsIn(environment),
  });
  const provider = await openProvider(id, config, http);
  await mkdir(to, { recursive: true });
  try {
    for (const conversation of conversations)
      for (const isStreamed of [false, true]) {
        const end = await hold(provider, { ...conversation, ...model }, isStreamed);
        const exchanges = await http.take();
        const called = `${conversation.name}-${isStreamed ? 'streamed' : 'whole'}`;
        const api = /[\w-]*$/.exec(exchanges[0]?.request.path ?? '')?.[0];
        const file = join(to, `${id}-${api}-${called}.json`);
        await writeFile(file, `${JSON.stringify(exchanges, null, 2)}\n`, { mode: 0o600 });
        process.stdout.write(`${called}: ${end}\n`);
      }
    if (id === 'openai' && model) process.stdout.write(await readEndOf(model.model, config, http));
  } finally {
    provider.close();
  }
}

/** The model to record; undefined where the simulator plays the provider, with one for each conversation. */
function readModel(config: Config, id: ProviderId): { model: string } | undefined {
  const { model, isSimulated } = poolConfig(config, id);
  if (isSimulated) return undefined;
  if (!hasCredentials(namesSet(config), id))
    throw new StartupError(`To record ${id}, set ${credentialVariables[id]}.`);
  if (model === undefined) throw new StartupError(`Name the model to record in ${id.toUpperCase()}_MODEL.`);
  return { model };
}

/** Values of variables that are no one else's to see, also those that only the SDKs read. */
const secretsIn = (environment: Environment): string[] =>
  Object.entries(environment).flatMap(([name, value]) =>
    value && value.length >= 6 && /KEY|TOKEN|SECRET|PASSWORD|PROJECT|_URL$/.test(name) ? [value] : [],
  );

/** Asks until the reply calls no tool, or the call fails. Resolves to the end in words. */
async function hold(
  provider: Provider,
  { model, turns: asked, parameters }: Conversation,
  isStreamed: boolean,
): Promise<string> {
  const turns = [...asked];
  for (let requests = 1; ; requests += 1) {
    const signal = AbortSignal.timeout(maxCallMs);
    const request = { turns, model, parameters, maxOutputTokens, reasoning: 'opaque' as const, signal };
    try {
      const reply = await provider.run({ ...request, isStreamed });
      const { reason, usage } = reply;
      if (!hasCalls(reply) || requests === maxRequests)
        return `${reason}, ${requests} requests, the last of ${usage?.inputTokens} and ${usage?.outputTokens} tokens`;
      turns.push(...nextTurns(reply));
    } catch (error) {
      return JSON.stringify(error instanceof Failure ? describeFailure(error) : { error: String(error) });
    }
  }
}

/** The day on which OpenAI ends a model, as `resources/models.d.ts` of its SDK has it. */
async function readEndOf(model: string, config: Config, http: RecordingHttp): Promise<string> {
  const base = config.OPENAI_BASE_URL ?? 'https://api.openai.com/v1';
  const { origin, pathname: path } = new URL(`${base}/models/${encodeURIComponent(model)}`);
  const headers = { authorization: `Bearer ${config.OPENAI_API_KEY}` };
  const { body } = await http.send({ origin, path, method: 'GET', headers, body: '' });
  return `${model} ends: ${readObject(String(body))?.shutdown_date ?? 'not announced'}\n`;
}
