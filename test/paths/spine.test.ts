import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Deployment, startDeployment } from '../support/deployment.js';
import { profiles } from '../support/profiles.js';

/** One place where a program passed on the text: the files on the way there, the last one first. */
interface Leg {
  readonly kind: 'sent' | 'resolved';
  readonly files: readonly string[];
}

const page = readFileSync('docs/architecture.md', 'utf8');
const section = (from: string, to: string): string => page.slice(page.indexOf(from), page.indexOf(to));
const chatSteps = section('\n1. `api/chat-apis/quillgate/chat.controller.ts`', '**Observers listen.**');
const chainStep = section('\n7. `workers/job/call-chain.ts`', '\n8. ');
const postSteps = section('## A post', '## Between');
/** The files that a part of the page does not name; a bare name is enough where no other one on the path has it. */
const unnamedIn = (part: string, files: readonly string[]): string[] => {
  const names = files.map((file) => file.split('/').at(-1) ?? '');
  const isUnique = (name: string) => names.indexOf(name) === names.lastIndexOf(name);
  return files.filter((file, n) => {
    const name = names[n] ?? '';
    return !part.includes(`\`${file}\``) && !(isUnique(name) && part.includes(`\`${name}\``));
  });
};

const spine = [
  'api/chat-apis/quillgate/chat.controller.ts',
  'api/chat-apis/serve.ts',
  'api/chat/chat-service.ts',
  'api/chat/live-chats.ts',
  'api/fleet-link/fleet-link.ts',
  'workers/pool/intake.ts',
  'workers/job/chat-job.ts',
  'workers/job/call-chain.ts',
  'workers/providers/openai/responses.ts',
];
/** Beyond these lies what no reader of the path has to open: libraries, and the queue that is between the programs. */
const boundary = /node_modules\/(?!p-retry|opossum)|^shared\/queue\//;

/**
 * The files between a boundary and the step with which a leg begins, the last one first; undefined for a leg that does
 * not come from there.
 */
function filesBetween(start: string, { files }: Leg): string[] | undefined {
  const passed: string[] = [];
  for (const file of files) {
    if (boundary.test(file)) passed.length = 0;
    else if (!passed.includes(file)) passed.push(file);
    if (file === start) return passed;
  }
  return undefined;
}

/** The files that take a job: BullMQ calls them when it has fetched one, and they call its processing of the job. */
const takers = ['shared/queue/patches/process-job.ts', 'workers/pool/intake.ts'];

/** Our files between BullMQ's fetch of a job and its processing; none on a leg without a job. */
function takersOf({ files }: Leg): string[] {
  const isBullMq = (file = '') => file.includes('node_modules/bullmq/');
  let taking: string[] = [];
  let passed: string[] = [];
  for (const [n, file] of files.entries()) {
    if (/^(api|workers|shared|db)\//.test(file)) passed.push(file);
    else {
      // The last ones between two of BullMQ's frames: nearer to the end of the leg are those of its other patches.
      if (passed.length > 0 && isBullMq(file) && isBullMq(files[n - passed.length - 1])) taking = passed;
      passed = [];
    }
  }
  return files.includes('workers/pool/intake.ts') ? taking : [];
}

const directory = mkdtempSync(join(tmpdir(), 'quillgate-spine-'));
const text = `spine-${randomUUID()}`;
let deployment: Deployment;
beforeAll(async () => {
  deployment = await startDeployment({
    release: resolve('test/support/unbundled'),
    variables: {
      ...profiles.plain,
      NODE_OPTIONS: `--import=${pathToFileURL(resolve('test/support/record-calls.mjs')).href}`,
      QUILLGATE_TEST_CALLS: join(directory, 'calls'),
      QUILLGATE_TEST_TEXT: text,
    },
  });
});
afterAll(async () => {
  await deployment?.stop();
  rmSync(directory, { recursive: true, force: true });
});

/** Where the text was passed on until now. */
function readLegs(): Leg[] {
  const lines = readFileSync(join(directory, 'calls'), 'utf8').trimEnd().split('\n');
  const toSource = (file: string) => {
    const path = relative('.', file);
    return path.startsWith('dist/') ? path.slice('dist/'.length).replace(/\.js$/, '.ts') : path;
  };
  return lines
    .map((line) => JSON.parse(line) as Leg)
    .map(({ kind, files }) => ({ kind, files: files.map(toSource) }));
}

describe('the path of a plain chat', () => {
  it('→ nine files and at most six others, all of which the architecture names', async () => {
    // On a busy machine the poll for results whose message was lost may come first: another way, which is not plain.
    const plainLegs = () =>
      readLegs().filter(({ files }) => !files.includes('api/fleet-link/result-poller.ts'));
    const hasPlainReply = () =>
      plainLegs().some(({ kind, files }) => kind === 'resolved' && files.includes('api/chat/live-chats.ts'));
    do {
      const { status, body } = await deployment.chat({
        model: 'sim-echo',
        messages: [{ role: 'user', content: text }],
      });
      expect([status, body.code]).toEqual([200, undefined]);
    } while (!hasPlainReply());
    const legs = plainLegs();
    const from = (start: string, kind: Leg['kind'] = 'sent') =>
      legs.filter((leg) => leg.kind === kind).flatMap((leg) => filesBetween(start, leg) ?? []);
    const [controller = '', , , , fleetLink = '', intake = ''] = spine;
    const passed = new Set([...from(controller), ...from(intake), ...from(fleetLink, 'resolved')]);
    const files = [...passed].filter((file) => /^(api|workers|shared|db)\//.test(file));
    expect(files).toEqual(expect.arrayContaining(spine));
    expect(unnamedIn(chatSteps, [...files, ...takers])).toEqual([]);
    const taking = legs.map(takersOf).filter(({ length }) => length > 0);
    expect(taking).not.toEqual([]);
    for (const passedBy of taking) expect(new Set(passedBy)).toEqual(new Set(takers));
    const others = unnamedIn(
      chainStep,
      files.filter((file) => !spine.includes(file)),
    );
    expect(others.length, others.join(', ')).toBeLessThanOrEqual(6);
  });
});

describe('the path of a post', () => {
  it('→ only files that the architecture names', async () => {
    const created = await deployment.blog('/blogs', {
      json: { title: text, content: text, status: 'published' },
    });
    expect(created.status).toBe(201);
    const { id } = (await created.json()) as { id: string };
    expect(await (await deployment.blog(`/blogs/${id}`)).text()).toContain(text);
    const controller = 'api/blog/blogs.controller.ts';
    const passed = new Set(readLegs().flatMap((leg) => filesBetween(controller, leg) ?? []));
    const files = [...passed].filter((file) => /^(api|shared|db)\//.test(file));
    expect(files).toEqual(
      expect.arrayContaining([controller, 'db/posts/post-store.ts', 'db/database/client.ts']),
    );
    expect(unnamedIn(postSteps, files)).toEqual([]);
  });
});
