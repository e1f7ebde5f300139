import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { XmlDocument } from 'libxml2-wasm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { describeApi } from '../../../api/app.js';
import { parseConfig } from '../../../shared/config/config.js';
import { type OpenApiDocument, operationsOf, readDocument } from '../../support/openapi-document.js';
import { type Answer, type Header, send } from './client.js';
import { mutations } from './mutations.js';
import type { Request, RequestBody, SentRequest } from './request.js';
import { requestsFor, type Target, targetOf } from './requests.js';
import { canaryMark, nameMark } from './texts.js';
import { judge } from './verdict.js';
import { openWorld, type World } from './world.js';

/** How many requests each operation gets (CI: 300), and what they are made from. */
const runs = Number(process.env.FUZZ_RUNS ?? 100);
const seed = Number(process.env.FUZZ_SEED ?? 20_261_121);
const lanes = 16;

const document = describeApi(parseConfig({}, 'config')) as OpenApiDocument;
const described = readDocument(document);
/** All but those with a cookie, whose refusals session.controller.test.ts has. */
const targets = operationsOf(document)
  .filter(({ path }) => path !== '/admin/session')
  .map((placed) => targetOf(document, placed));

/**
 * Documented, and no answer to these requests: readers need no scope here, a post's old slugs have no names, and no
 * user who chats is suspended.
 */
const unmet: ReadonlySet<string> = new Set([
  ...['listPosts 403', 'getPost 403', 'jsonFeed 403', 'atomFeed 403', 'getPost 308'],
  ...['chat 403', 'getChat 403', 'cancelChat 403'],
]);

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(async () => {
  await world?.deployment.stop();
});

describe('requests made from the OpenAPI document, every second one bent', () => {
  it.each(targets)(
    '$operation.operationId -> each answer is one that the document describes',
    async (target) => {
      const { operationId, responses } = target.operation;
      const requests = fc.sample(bentRequests(target), { seed, numRuns: runs }).values();
      const logged = world.deployment.logsFromNow();
      const met = new Set<string>();
      // The lanes share one iterator, so that each request is sent once.
      const lane = async () => {
        for (const request of requests) met.add(String((await ask(target, request)).status));
      };
      await Promise.all(Array.from({ length: lanes }, lane));
      expect(linesThatSayTooMuch(logged())).toEqual([]);
      // Otherwise the run has tested less than it seems.
      const expected = Object.keys(responses).filter(
        (status) => status < '429' && !unmet.has(`${operationId} ${status}`),
      );
      if (runs >= 300) expect([...met]).toEqual(expect.arrayContaining(expected));
    },
  );
});

/** Every second one as it should be, the others bent by those of the mutations that the operation allows. */
function bentRequests(target: Target): fc.Arbitrary<Request> {
  const sound = requestsFor(target);
  const [example] = fc.sample(sound, { seed, numRuns: 1 });
  const possible = mutations.filter((mutate) => example && mutate(target, example));
  const bent = fc
    .tuple(sound, fc.constantFrom(...possible))
    .chain(([request, mutate]) => mutate(target, request) ?? fc.constant(request));
  return fc.oneof(sound, bent);
}

/** Sends the request and judges the answer. */
async function ask({ operation: { operationId } }: Target, request: Request): Promise<Answer> {
  const operation = described.get(operationId);
  if (operation === undefined) throw new Error(`the document has no operation ${operationId}`);
  const sent = world.resolve(request);
  const { method, target: path } = sent;
  try {
    const answer = await send(world.deployment.api.port, {
      method,
      path,
      headers: headersOf(sent),
      body: toBytes(sent.body),
    });
    judge(operation, sent, answer);
    if (!sent.odd && answer.status <= 201 && answer.body !== '') {
      world.learn(operationId, sent, answer);
      if (operationId === 'atomFeed') XmlDocument.fromString(answer.body).dispose();
    }
    return answer;
  } catch (error) {
    throw new Error(
      `With FUZZ_SEED=${seed}: ${(error as Error).message}\n${JSON.stringify(sent).slice(0, 3000)}`,
    );
  }
}

const headersOf = ({ body, credentials, contentType = [], own, others }: SentRequest): Header[] => [
  ...(body?.compressed ? [['Content-Encoding', encodings[body.compressed].name] as const] : []),
  ...[...credentials, ...contentType, ...own, ...others],
];

const encodings = {
  gzip: { name: 'gzip', compress: gzipSync },
  deflate: { name: 'deflate', compress: deflateSync },
  br: { name: 'br', compress: brotliCompressSync },
};

function toBytes(body: RequestBody | undefined): Buffer | undefined {
  if (body === undefined) return undefined;
  const bytes = Buffer.from(body.text, body.bytes);
  return body.compressed ? encodings[body.compressed].compress(bytes) : bytes;
}

/** Lines of the log with a text of the caller's, or with an unexpected failure. What operators set is logged. */
const linesThatSayTooMuch = (logged: string): string[] =>
  logged
    .split('\n')
    .filter((line) => !line.includes('"settings changed"'))
    .filter((line) => [canaryMark, nameMark, 'unexpected error'].some((mark) => line.includes(mark)));
