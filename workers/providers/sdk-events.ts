import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { parseAnswer } from './exact-json.js';

/** The events of a stream, in lists of those that came at once. The SDKs' own readers take up to twice as long. */
export async function* readEvents({ body }: Response): AsyncGenerator<EventSourceMessage[]> {
  if (body === null) return;
  const decoder = new TextDecoder();
  let events: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (event) => events.push(event) });
  for await (const chunk of body) {
    parser.feed(decoder.decode(chunk, { stream: true }));
    if (events.length === 0) continue;
    yield events;
    events = [];
  }
  // Some servers leave out the blank line behind the last event.
  parser.feed('\n\n');
  yield events;
}

/** The JSON that an event has: an empty object for none, by which some servers keep a connection alive. */
export const jsonOf = ({ data }: EventSourceMessage): unknown =>
  (data.trim() === '' ? undefined : parseAnswer(data)) ?? {};
