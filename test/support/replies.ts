import type { Turn } from '../../shared/contract.js';
import type { Provider, ProviderEvent } from '../../workers/providers/provider.js';

/** What one call of a provider is asked in a test. */
export interface ChatCommand {
  model: string;
  stream: boolean;
  turns?: readonly Turn[];
  signal?: AbortSignal;
}

/** Starts a call; nothing is sent before the events are read. */
export function ask(
  provider: Provider,
  {
    model,
    stream,
    turns = [{ role: 'user', content: 'Hello' }],
    signal = new AbortController().signal,
  }: ChatCommand,
): AsyncIterable<ProviderEvent> {
  return provider.generate({ turns, model, stream, maxOutputTokens: 4096 }, signal);
}

/** Reads a call to its end: the pieces of its text, and how it finished. */
export async function readReply(events: AsyncIterable<ProviderEvent>) {
  const all = await readEvents(events);
  const deltas = all.flatMap((event) => (event.type === 'delta' ? [event.text] : []));
  return { deltas, text: deltas.join(''), finish: all.at(-1), length: all.length };
}

/** Every event of a call that ends well; otherwise rejects as the call does. */
export async function readEvents(events: AsyncIterable<ProviderEvent>): Promise<ProviderEvent[]> {
  const all: ProviderEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}
