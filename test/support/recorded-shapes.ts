import { createParser } from 'eventsource-parser';
import type { Exchange } from '../../cli/record/recording-http.js';
import { isObject, readJson } from '../../shared/json/json.js';

/** The answers and events that only one of two recordings has, each by the places of its values and their types. */
export function differences(recorded: readonly Exchange[], played: readonly Exchange[]) {
  const [real, simulated] = [new Set(recorded.flatMap(shapesOf)), new Set(played.flatMap(shapesOf))];
  return {
    onlyRecorded: [...real].filter((shape) => !simulated.has(shape)),
    onlyPlayed: [...simulated].filter((shape) => !real.has(shape)),
  };
}

/** Such as `200 answer.choices[].message.content: string` and `200 message_start.message.id: string`. */
function shapesOf({ response: { status, headers, body, pieces = [] } }: Exchange): string[] {
  const text = pieces.map(([, piece]) => piece).join('');
  const isFrames = String(headers['content-type']).startsWith('application/vnd.amazon');
  const answers = isFrames ? framesIn(Buffer.from(text, 'latin1')) : eventsIn(text);
  if (body !== undefined) answers.push(['answer', body]);
  return answers.flatMap(([name, value]) => placesIn(value, `${status} ${name}`));
}

type Said = [name: string, value: unknown];

function placesIn(value: unknown, at: string): string[] {
  if (Array.isArray(value)) return value.flatMap((each) => placesIn(each, `${at}[]`));
  if (isObject(value)) return Object.entries(value).flatMap(([key, each]) => placesIn(each, `${at}.${key}`));
  return [`${at}: ${value === null ? 'null' : typeof value}`];
}

function eventsIn(text: string): Said[] {
  const events: Said[] = [];
  const onEvent = ({ event = 'event', data }: { event?: string | undefined; data: string }) =>
    events.push([event, readJson(data) ?? data]);
  createParser({ onEvent }).feed(text);
  return events;
}

/** As `dev/simulator/bedrock/event-frame.ts` writes them: the name of a frame is a header of it. */
function framesIn(bytes: Buffer): Said[] {
  const frames: Said[] = [];
  for (let rest = bytes; rest.length >= 16; rest = rest.subarray(rest.readUInt32BE(0))) {
    const end = 12 + rest.readUInt32BE(4);
    const [, name = 'frame'] =
      /:(?:event|exception)-type.{3}(\w+)/s.exec(rest.toString('latin1', 12, end)) ?? [];
    frames.push([name, readJson(rest.toString('utf8', end, rest.readUInt32BE(0) - 4))]);
  }
  return frames;
}
