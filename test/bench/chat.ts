import { chatBody, chatHeaders, openGateway } from './gateway.js';
import type { Traffic } from './load.js';
import type { Options } from './options.js';
import { headersToward, openPortkey } from './portkey.js';
import { newPlace, type Place, startProgram } from './programs.js';
import { type CompareDeps, type Compared, compare, type Row, type Side } from './rows.js';
import type { StoreName } from './stores.js';

/** A chat by its model and, where it is kept for later, its key, or where it is long, the length of its text. */
interface Chat {
  readonly model: string;
  readonly key?: Record<string, string>;
  readonly bytes?: number;
}

/** What this checkout is compared with. */
export interface Beside extends CompareDeps {
  readonly options: Options;
  readonly place: Place;
  /** Root folder of the other checkout. */
  readonly baseline: string | undefined;
}

/** Measures the chat on one store, alone, in turns with another checkout, or with Portkey's gateway and the simulator. */
export async function compareChat(
  store: StoreName,
  deps: Beside,
  rows: 'chat' | 'long' = 'chat',
): Promise<Compared> {
  const { place, baseline, options } = deps;
  const program = { name: 'simulator', args: ['simulator', '--port', '0'] };
  const simulator = await startProgram({ ...program, environment: { PATH: process.env.PATH } }, place);
  const simulatorUrl = `http://127.0.0.1:${simulator.port}`;
  const openOurs = async (name: string, checkout?: string): Promise<Side<Chat>> => {
    const gateway = await openGateway(store, { simulatorUrl, checkout }, newPlace(place, name));
    const [api, worker] = [gateway.api, ...gateway.workers].map(({ pid }) => pid);
    const common = { origin: gateway.url, method: 'POST', paths: ['/chat'], bodies: [chatBody] } as const;
    return {
      ...{ pids: { api, worker, store: gateway.store.pid }, failed: gateway.failed },
      traffic: ({ model, key, bytes }) => {
        if (bytes !== undefined) return longCompletion(gateway.url, model, bytes);
        const headers = { ...chatHeaders, 'X-LLM-Model': model, ...key };
        return { ...common, headers, expected: ['response'] };
      },
    };
  };
  const sides = { [baseline ? 'candidate' : 'quillgate']: await openOurs('ours') };
  if (baseline !== undefined) sides.baseline = await openOurs('baseline', baseline);
  if (options.peer === 'portkey') {
    const { origin, pid } = await openPortkey(newPlace(place, 'portkey'));
    sides.portkey = completions(origin, { peer: pid }, headersToward(simulatorUrl));
    sides.simulator = completions(simulatorUrl, {}, {});
  }
  return compare(sides, rows === 'long' ? longRows : chatRows(options), deps);
}

/** As OpenAI's clients ask; the call at the simulator is the same. */
function completions(origin: string, pids: Side<Chat>['pids'], more: Record<string, string>): Side<Chat> {
  const headers = { Authorization: 'Bearer simulator', 'Content-Type': 'application/json', ...more };
  const common = { origin, method: 'POST', paths: ['/v1/chat/completions'], headers } as const;
  const bodies = (model: string) => [JSON.stringify({ model, ...JSON.parse(chatBody) })];
  return { pids, traffic: ({ model }) => ({ ...common, bodies: bodies(model), expected: ['choices'] }) };
}

/** A long history, as agents send it; both releases take it at this address. */
function longCompletion(origin: string, model: string, bytes: number): Traffic {
  const content = 'What is a "queue" good for?\n'.repeat(Math.ceil(bytes / 28));
  const body = { model: `openai/${model}`, messages: [{ role: 'user', content }] };
  const { Authorization, 'Content-Type': type } = chatHeaders;
  return {
    ...{ origin, method: 'POST', paths: ['/v1/chat/completions'], bodies: [JSON.stringify(body)] },
    ...{ headers: { Authorization, 'Content-Type': type }, expected: ['choices'] },
  };
}

const mebibyte = 1_048_576;

/** Few callers: of one user an API process takes 64 MiB at once. */
const longRows: Row<Chat>[] = [1, 8].map((size) => ({
  title: `bodies of ${size} MiB, callers 4`,
  task: { model: 'sim-stream-20-0', bytes: size * mebibyte },
  connections: 4,
}));

/** For each time of the provider all numbers of callers; 32 callers also with stored chats, which only ours have. */
const chatRows = ({ latenciesMs, connections, peer }: Options): Row<Chat>[] =>
  latenciesMs.flatMap((latencyMs) =>
    connections.flatMap((count) => {
      const task = { model: latencyMs === 0 ? 'sim-echo' : `sim-latency-${latencyMs}` };
      const title = `provider ${latencyMs} ms, callers ${count}`;
      const row = { title, task, connections: count };
      const key = { 'Idempotency-Key': '{unique}' };
      const stored = { ...row, title: `${title}, stored`, task: { ...task, key } };
      return count === 32 && !peer ? [row, stored] : [row];
    }),
  );
