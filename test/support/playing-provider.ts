import type { ServerResponse } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import { afterAll } from 'vitest';
import { eventFrame } from '../../dev/simulator/bedrock/event-frame.js';
import type { ProviderId } from '../../shared/contracts/contract.js';
import { piecesOf, textOfTape } from '../../shared/protocol/parts.js';
import type { OnDelta, Provider, ProviderRequest } from '../../workers/providers/provider.js';
import { providerSetups } from './providers.js';
import { ask, callsOf, type ProviderCommand } from './replies.js';
import { serve } from './serve.js';

/** An answer as its provider writes it. */
export interface PlayedAnswer {
  /** Of 400 and above, `whole` is the answer to every request. */
  status?: number;
  whole: string;
  /** Those of its stream; no names at OpenAI and Vertex AI. A text is data that are written as they are. */
  events: [name: string, data: object | string][];
  /** Stands in for the end of the stream. */
  end?: (response: ServerResponse) => unknown;
}

const endStream = (response: ServerResponse) => void response.end();

/** An event as all but Bedrock write it. */
export const toServerSentEvent = ([name, data]: PlayedAnswer['events'][number]): string =>
  `${name && `event: ${name}\r\n`}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\r\n\r\n`;

/** The answer with this event before and behind each of its own. */
export const withEvent = (answer: PlayedAnswer, ...event: PlayedAnswer['events'][number]): PlayedAnswer => ({
  ...answer,
  events: [event, ...answer.events.flatMap((own): PlayedAnswer['events'] => [own, event])],
});

/**
 * Adapters of a server that gives the answer that is set, in the format of each, and keeps the last request's body.
 * `setup` is the one of `providerSetups` that stands for its provider, if it is not the first.
 */
export async function startPlaying(setup?: string) {
  const played = { answer: { whole: '', events: [] } as PlayedAnswer, sent: '' };
  const server = await serve(async (request, response) => {
    played.sent = await readText(request);
    const { status = 200, whole, events, end = endStream } = played.answer;
    const path = request.url ?? '';
    if (status >= 400) response.writeHead(status, { 'Content-Type': 'application/json' }).end(whole);
    else if (path.endsWith('/converse-stream')) {
      response.setHeader('Content-Type', 'application/vnd.amazon.eventstream');
      for (const [name, data] of events) response.write(eventFrame(name, Object(data)));
      end(response);
    } else if (path.includes('alt=sse') || JSON.parse(played.sent).stream) {
      response.setHeader('Content-Type', 'text/event-stream');
      for (const event of events) response.write(toServerSentEvent(event));
      end(response);
    } else response.setHeader('Content-Type', 'application/json').end(whole);
  });
  afterAll(() => server.close());
  const providers = new Map<ProviderId, Provider>();
  for (const { name, id, load } of providerSetups) {
    if (providers.has(id) && name !== setup) continue;
    const provider = await load(server.url);
    providers.set(id, provider);
    afterAll(() => provider.close());
  }

  return {
    /** The body of the last request, as it was written. */
    sent: () => played.sent,
    /** Makes the call with this request as it is. */
    playRequest: (id: ProviderId, answer: PlayedAnswer, request: ProviderRequest, onDelta?: OnDelta) => {
      played.answer = answer;
      return (providers.get(id) as Provider).run(request, onDelta);
    },
    /** Makes the call, and gives the reply with its calls as lists, its text, and its parts. */
    play: async (
      id: ProviderId,
      answer: PlayedAnswer,
      asked: Omit<ProviderCommand, 'model'> & { model?: string },
    ) => {
      played.answer = answer;
      const reply = await ask(providers.get(id) as Provider, { model: 'm', ...asked });
      const calls = callsOf(reply).map((call) => [call.id, call.name, call.arguments]);
      return { ...reply, calls, text: textOfTape(reply), pieces: piecesOf(reply) };
    },
  };
}
