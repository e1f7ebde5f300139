import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { isObject } from '../../../shared/json/json.js';
import { parseAnswer } from '../reply/exact-json.js';

/** The name of the one event that a body has which is no stream, although one was asked for: its data are all of it. */
export const wholeBody = 'whole body';

/**
 * The events of a stream, in lists of those that came at once, without those that only keep a connection alive. The
 * SDKs' own readers take up to twice as long.
 */
export async function* readEvents({ body }: Response): AsyncGenerator<EventSourceMessage[]> {
  if (body === null) return;
  const decoder = new TextDecoder();
  let events: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (event) => isSignOfLife(event) || events.push(event) });
  let first: string | undefined;
  let whole = '';
  for await (const chunk of body) {
    const text = decoder.decode(chunk, { stream: true });
    first ??= text.trimStart()[0];
    // No line of a stream of events begins so.
    if (first === '{') whole += text;
    else parser.feed(text);
    if (events.length === 0) continue;
    yield events;
    events = [];
  }
  // Some servers leave out the blank line behind the last event.
  parser.feed('\n\n');
  yield whole === '' ? events : [{ event: wholeBody, data: whole, id: undefined }];
}

const sign = /^(: ?)?(ping|keep-?alive|heartbeat)$/i;

/**
 * Some servers write the time into such an event, or nothing but its name, as Vertex AI does for models of others.
 * https://github.com/anomalyco/opencode/issues/50871
 */
const isSignOfLife = ({ event = '', data }: EventSourceMessage): boolean =>
  sign.test(event) || sign.test(data);

/** The JSON that an event has: an empty object for none, or for a text without a character, as for a sign of life. */
export function jsonOf({ data }: EventSourceMessage): unknown {
  const json = (data.trim() === '' ? undefined : parseAnswer(data)) || {};
  return isObject(json) && typeof json.type === 'string' && sign.test(json.type) ? {} : json;
}
