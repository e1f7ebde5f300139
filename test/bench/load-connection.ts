import type autocannon from 'autocannon';
import { isExpected, type Target, type Traffic } from './traffic.js';

/** What one connection counts over its whole time. */
export interface ConnectionCounts {
  /** Answers of another status than expected, by status. */
  readonly wrongStatus: Map<number, number>;
  /** Answers of the right status with another body, among those that were looked at. */
  wrongBody: number;
}

/** One answer in so many is looked at; the first of each connection is. */
const sampleEvery = 50;

interface ConnectionOptions {
  traffic: Traffic;
  /** Its place among all connections. */
  index: number;
  connections: number;
}

/** Gives one of autocannon's clients its requests, and checks the answers. */
export function runConnection(client: autocannon.Client, options: ConnectionOptions): ConnectionCounts {
  const { traffic } = options;
  const targets = targetsOf(options);
  const etags = new Map(targets.flatMap(({ path, etag }) => (etag === undefined ? [] : [[path, etag]])));
  const counts = { wrongStatus: new Map<number, number>(), wrongBody: 0 };
  const varies = targets.length > 1 || traffic.bodies.length > 1 || etags.size > 0;
  let path = '';
  let answers = 0;
  let sample: Buffer[] | undefined;

  const prepareNext = () => {
    path = randomOf(targets)?.path ?? '/';
    client.setRequests([requestTo(path, etags.get(path), traffic)]);
  };
  client.on('headers', (answer) => {
    sample = answers % sampleEvery === 0 ? [] : undefined;
    if (etags.has(path)) etags.set(path, etagIn(answer) ?? '');
  });
  client.on('body', (chunk) => sample?.push(Buffer.from(chunk)));
  // autocannon sends the next request after this.
  client.on('response', (status) => {
    answers += 1;
    if (status !== traffic.expected.status)
      counts.wrongStatus.set(status, (counts.wrongStatus.get(status) ?? 0) + 1);
    else if (sample && !isExpected(Buffer.concat(sample).toString(), traffic.expected.body))
      counts.wrongBody += 1;
    if (varies || hasUnique(traffic)) prepareNext();
  });
  prepareNext();
  return counts;
}

/** Those that no other connection uses, so that no two write to the same thing; all, when there are too few. */
function targetsOf({ traffic, index, connections }: ConnectionOptions): readonly Target[] {
  const own = traffic.targets.filter((_, place) => place % connections === index);
  return traffic.targets.length < connections ? traffic.targets : own;
}

/** The request that goes to this path: with a body at random, and what is unique in it filled in. */
export function requestTo(path: string, etag: string | undefined, traffic: Traffic): autocannon.Request {
  const body = randomOf(traffic.bodies);
  return {
    method: traffic.method,
    path,
    headers: { ...uniqueHeaders(traffic), ...(etag !== undefined && { 'If-Match': etag }) },
    ...(body !== undefined && { body: body.replaceAll(uniqueMark, uniqueText) }),
  };
}

const uniqueMark = '{unique}';

const hasUnique = ({ bodies, headers }: Traffic): boolean =>
  [...bodies, ...Object.values(headers)].some((text) => text.includes(uniqueMark));

/** Without blanks, which not every header allows. */
const uniqueHeaders = ({ headers }: Traffic): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      value.replaceAll(uniqueMark, () => uniqueText().replaceAll(' ', '-')),
    ]),
  );

const uniqueText = (): string => `${process.hrtime.bigint().toString(36)} ${process.pid.toString(36)}`;

const randomOf = <T>(items: readonly T[]): T | undefined => items[Math.floor(Math.random() * items.length)];

/** autocannon's types promise an object of headers; it hands over its parser's list of names and values. */
function etagIn(answer: unknown): string | undefined {
  const { headers } = answer as { headers: readonly string[] };
  const place = headers.findIndex((name, index) => index % 2 === 0 && name.toLowerCase() === 'etag');
  return place < 0 ? undefined : headers[place + 1];
}
