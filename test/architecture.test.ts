import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, it } from 'vitest';
import { providerIds } from '../shared/contracts/contract.js';

/** What nearly every room may import. */
const base = ['shared', 'shared/contracts', 'shared/json'];

/** What jobs need of the providers: not the adapters. */
const providerRooms = [
  'workers/providers',
  'workers/providers/errors',
  'workers/providers/http',
  'workers/providers/reply',
];
const adapter = [
  ...[...base, 'shared/models', 'shared/protocol', 'shared/runtime', ...providerRooms],
  'workers/providers/http/patches',
];

const chatApi = [
  'shared/**',
  'db/access',
  'db/ledger',
  'api/http',
  'api/access',
  'api/chat',
  'api/fleet-link',
];

/** Each room, and what it may import beside itself: rooms, `x/**` for a room and all below it, or single files. */
const rooms: Record<string, string[]> = {
  shared: ['shared/contracts', 'shared/json'],
  'shared/contracts': [],
  'shared/json': ['shared'],
  'shared/urls': base,
  'shared/config': [...base, 'shared/models', 'shared/urls'],
  'shared/models': [...base, 'shared/urls'],
  'shared/prices': [...base, 'shared/config'],
  'shared/messages-api': [...base, 'shared/models'],
  'shared/protocol': [...base, 'shared/models'],
  'shared/runtime': [...base, 'shared/config'],
  'shared/metrics': [...base, 'shared/runtime'],
  'shared/queue': [...base, 'shared/protocol', 'shared/runtime', 'shared/urls'],
  'shared/fleet': [
    ...base,
    'shared/models',
    'shared/config',
    'shared/protocol',
    'shared/queue',
    'shared/runtime',
  ],
  'shared/queue/stores': [
    ...[...base, 'shared/config', 'shared/runtime', 'shared/urls'],
    ...['shared/queue', 'shared/queue/patches'],
  ],
  'shared/queue/patches': ['shared/runtime', 'shared/queue/stores'],
  db: [...base, 'db/database'],
  'db/database': [...base, 'shared/runtime', 'shared/urls', 'db/patches'],
  'db/patches': ['shared/urls'],
  'db/access': [...base, 'db', 'db/database'],
  'db/settings': [...base, 'shared/models', 'shared/protocol', 'shared/queue', 'db', 'db/database'],
  'db/ledger': [...base, 'shared/prices', 'shared/protocol', 'db', 'db/access', 'db/database'],
  'db/posts': [...base, 'db', 'db/database', 'db/access'],
  api: ['shared/**', 'db/**', 'api/**'],
  'api/http': [...base, 'shared/runtime'],
  'api/access': ['shared/**', 'db/access', 'db/database', 'api/http'],
  'api/fleet-link': ['shared/**'],
  // Neither HTTP nor the queue.
  'api/chat': [
    ...[...base, 'shared/models', 'shared/protocol', 'shared/runtime', 'shared/fleet'],
    ...['db/access', 'api/access', 'api/fleet-link'],
    ...[
      'shared/queue/add-attempt.ts',
      'shared/queue/blobs.ts',
      'shared/queue/blobs.ts',
      'shared/queue/queue-store.ts',
    ],
    'shared/queue/add-attempt.ts',
  ],
  // What all APIs share, and the array of them.
  'api/chat-apis': [...chatApi, 'api/openapi', 'api/chat-apis/openai-chat'],
  'api/chat-apis/quillgate': [...chatApi, 'api/chat-apis', 'api/chat-apis/openai-chat/completion.ts'],
  'api/chat-apis/openai-chat': [...chatApi, 'api/chat-apis', 'api/openapi'],
  'api/blog': [
    ...base,
    'shared/config',
    'db/posts',
    'db/access',
    'api/http',
    'api/access',
    'api/blog/rendering',
  ],
  'api/blog/rendering': [...base, 'shared/runtime'],
  'api/site': [
    ...base,
    'db/posts',
    'api/access',
    'shared/config',
    'shared/models',
    'shared/runtime',
    'api/http',
    'shared/fleet',
    'api/blog',
    'api/blog/rendering',
  ],
  'api/admin': [
    ...['shared/**', 'db', 'db/access', 'db/database', 'db/ledger', 'db/settings'],
    ...['api/http', 'api/access'],
  ],
  'api/ledger': ['shared/**', 'db/ledger', 'db/database', 'api/http', 'api/access', 'api/chat'],
  'api/operations': ['shared/**', 'db/database', 'api/http'],
  'api/openapi': ['shared/**', 'api/http', 'api/chat-apis/chat-api.ts'],
  workers: ['shared/**', 'workers/**'],
  'workers/pool': ['shared/**', 'workers/job', 'workers/gate', ...providerRooms],
  'workers/job': ['shared/**', 'workers/gate', ...providerRooms],
  'workers/gate': [...base, 'shared/protocol', 'shared/runtime', 'workers/providers/errors'],
  // The only room that knows the adapters: it loads the one that is needed.
  'workers/providers': ['shared/**', 'workers/providers/**'],
  'workers/providers/http': [
    ...[...base, 'shared/runtime', 'workers/providers/errors', 'workers/providers/http/patches'],
    'workers/providers/reply/exact-json.ts',
    'workers/providers/reply/call-meter.ts',
  ],
  'workers/providers/http/patches': [],
  'workers/providers/errors': [
    ...[...base, 'shared/models', 'shared/protocol', 'workers/providers/http'],
    'workers/providers/reply/answer-fields.ts',
  ],
  'workers/providers/reply': [
    ...base,
    'shared/models',
    'shared/protocol',
    'shared/runtime',
    ...providerRooms,
  ],
  'workers/providers/openai': adapter,
  'workers/providers/anthropic': adapter,
  'workers/providers/bedrock': adapter,
  'workers/providers/vertexai': adapter,
  cli: ['shared/**', 'db/**', 'cli/**'],
  'cli/commands': ['shared/**', 'db/**', 'cli', 'cli/output', 'cli/posts'],
  'cli/output': base,
  'cli/posts': ['shared/**', 'db/**', 'cli', 'cli/output'],
  dev: ['shared/**', 'db/database', 'dev/**'],
  'dev/postgres': ['dev'],
  'dev/release': [],
  'dev/simulator': [...base, 'shared/urls', 'dev/simulator/**'],
  'dev/simulator/openai': [...base, 'dev/simulator'],
  'dev/simulator/responses': [...base, 'dev/simulator', 'dev/simulator/openai'],
  'dev/simulator/anthropic': [...base, 'dev/simulator'],
  'dev/simulator/bedrock': [...base, 'dev/simulator'],
  'dev/simulator/vertexai': [...base, 'dev/simulator'],
  // Of `shared` the types of what the controllers answer with, and nothing else.
  console: ['shared/contracts', 'console/**'],
  'console/session': ['shared/contracts', 'console'],
  'console/parts': ['shared/contracts', 'console', 'console/session'],
  'console/accounts': ['shared/contracts', 'console', 'console/parts'],
  'console/pools': ['shared/contracts', 'console', 'console/parts'],
  'console/playground': ['shared/contracts', 'console', 'console/parts'],
  'console/posts': ['shared/contracts', 'console', 'console/parts'],
  'console/requests': ['shared/contracts', 'console', 'console/parts', 'console/pools'],
  'console/views': ['shared/contracts', 'console/**'],
};

/** Libraries, and where alone they may be imported: a folder with all below it, or a file. */
const libraries: [name: RegExp, ...places: string[]][] = [
  [/^(express|cors|helmet|tsoa|@tsoa\/|swagger-ui-dist)/, 'api'],
  [/^(bullmq|ioredis)$/, 'shared/queue', 'api/fleet-link', 'workers/pool'],
  [/^pg$/, 'shared/queue', 'dev/postgres'],
  [/^drizzle-orm/, 'db/database/drizzle.ts'],
  [/^postgres$/, 'db/database'],
  [/^(uuid|@sindresorhus\/slugify)$/, 'db'],
  [/^opossum$/, 'workers/gate/breaker.ts'],
  [/^undici/, 'workers/providers/http'],
  [/^eventsource-parser/, 'workers/providers', 'console/playground'],
  [/^openai/, 'workers/providers/openai'],
  [/^@anthropic-ai\//, 'workers/providers/anthropic'],
  [/^(@aws-sdk|@smithy)\//, 'workers/providers/bedrock'],
  [/^(@google\/|google-auth-library)/, 'workers/providers/vertexai'],
  [/^p-retry$/, 'shared/runtime/retry.ts'],
  [/^pino$/, 'shared/runtime/log.ts'],
  [/^@opentelemetry\//, 'shared/runtime/otlp-tracing.ts'],
  [/^@prometheus-io\/client$/, 'shared/metrics/instruments.ts'],
  // In no thread that serves requests: a text that keeps the parser busy would hold up every request.
  [/^(markdown-it|markdown-it-footnote|sanitize-html)$/, 'api/blog/rendering/markdown-worker.ts'],
  [
    /^lru-cache$/,
    'shared/fleet',
    'api/blog/rendering',
    'api/blog/feeds.controller.ts',
    'api/site/front-page.ts',
    'api/access',
    'api/ledger/drain.ts',
    'workers/job',
    'workers/gate',
  ],
  [/^feedsmith$/, 'api/blog'],
  [/^rate-limiter-flexible$/, 'api/access', 'api/chat', 'api/ledger/chat-recorder.ts'],
  [/^commander$/, 'cli'],
  [/^yaml$/, 'cli/posts/markdown-file.ts'],
  [/^yocto-spinner$/, 'dev/stages.ts'],
  [/^(preact|@preact\/)/, 'console'],
  [/^uplot/, 'console/parts'],
];

const sources = ['api', 'workers', 'shared', 'db', 'cli', 'dev', 'console']
  .flatMap((room) => readdirSync(room, { recursive: true, encoding: 'utf8' }).map((name) => join(room, name)))
  .filter((name) => /\.tsx?$/.test(name) && !name.startsWith('api/generated/'));

const specifiersOf = (file: string): string[] =>
  [...readFileSync(file, 'utf8').matchAll(/(?:\bfrom|\bimport\(|^import)\s*'([^']+)'/gm)].map(
    ([, specifier = '']) => specifier,
  );

/** Types are counted. */
const importsOf = (file: string): string[] =>
  specifiersOf(file)
    .filter((specifier) => specifier.startsWith('.'))
    .map((specifier) => toSource(normalize(join(dirname(file), specifier))));

function toSource(path: string): string {
  const source = path.replace(/\.js$/, '.ts');
  return sources.includes(`${source}x`) ? `${source}x` : source;
}

const imports = new Map(sources.map((file) => [file, importsOf(file)]));

/** Itself only where the imports lead back to it. */
function filesReachedFrom(file: string): Set<string> {
  const reached = new Set(imports.get(file));
  // The loop also visits what it adds.
  for (const each of reached) for (const target of imports.get(each) ?? []) reached.add(target);
  return reached;
}

const isIn = (file: string, place: string): boolean => file === place || file.startsWith(`${place}/`);

/** Whether a source file may import another one, or what is generated or written beside them. */
function mayImport(file: string, target: string): boolean {
  const [from, to] = [dirname(file), dirname(target)];
  if (to === from || !sources.includes(target)) return true;
  return (rooms[from] ?? []).some((use) =>
    use.endsWith('/**') ? isIn(to, use.slice(0, -'/**'.length)) : [to, target].includes(use),
  );
}

describe('every source file', () => {
  it('is in a room', () => {
    expect(sources.filter((file) => rooms[dirname(file)] === undefined)).toEqual([]);
  });

  it.each([
    ['api/chat-apis/quillgate/chat.controller.ts', 'api/blog/feeds.controller.ts'],
    ['api/chat/chat-service.ts', 'api/http/problem.ts'],
    ['api/chat/chat-service.ts', 'shared/queue/relay.ts'],
    ['api/fleet-link/fleet-link.ts', 'api/chat/live-chats.ts'],
    ['api/blog/feeds.controller.ts', 'api/chat/chat-service.ts'],
    ['api/http/server.ts', 'api/access/login-limiter.ts'],
    ['workers/job/retry.ts', 'workers/pool/pool.ts'],
    ['workers/gate/breaker.ts', 'workers/job/retry.ts'],
    ['workers/job/retry.ts', 'api/chat/chat-service.ts'],
    ['shared/runtime/log.ts', 'shared/queue/relay.ts'],
    ['cli/fleet.ts', 'api/chat/chat-service.ts'],
  ])('like %s may not import one like %s', (file, target) => {
    expect(sources).toEqual(expect.arrayContaining([file, target]));
    expect(mayImport(file, target)).toBe(false);
  });

  it('imports of ours what its room may import', () => {
    const forbidden = sources.flatMap((file) =>
      importsOf(file)
        .filter((target) => target.startsWith('test/') || !mayImport(file, target))
        .map((target) => `${file} → ${target}`),
    );
    expect(forbidden).toEqual([]);
  });

  it('is in no circle of imports', () => {
    expect(sources.filter((file) => filesReachedFrom(file).has(file))).toEqual([]);
  });

  it('of the console imports nothing of ours but types from outside, and no library but its own', () => {
    const forbidden = sources
      .filter((file) => isIn(file, 'console'))
      .flatMap((file) => {
        const imports = [
          ...readFileSync(file, 'utf8').matchAll(/^(?:import|export)( type)?\b[^;]*?\bfrom '([^']+)';$/gm),
        ];
        return imports.flatMap(([, isType, specifier = '']) => {
          const isOwn = specifier.startsWith('.') && !/^(\.\.\/)+shared\//.test(specifier);
          return isOwn || isType || /^(preact|@preact\/signals|uplot|eventsource-parser)/.test(specifier)
            ? []
            : [`${file} → ${specifier}`];
        });
      });
    expect(forbidden).toEqual([]);
  });

  it('writes the fields of dependencies out, and makes no type of parts of others or of two', () => {
    const made = /\b(?:Pick|Omit)<\s*\w*Deps\b|\w*Deps\s*&|&\s*\w*Deps\b/;
    const ofOthers = [
      "Pick<PoolDeps, 'log'>",
      "Omit<\n  PoolDeps, 'log'>",
      'PoolDeps & Times',
      'Times & PoolDeps',
    ];
    expect(ofOthers.filter((type) => !made.test(type))).toEqual([]);
    expect(sources.filter((file) => made.test(readFileSync(file, 'utf8')))).toEqual([]);
  });

  it('imports a library where that has its place', () => {
    const forbidden = sources.flatMap((file) =>
      libraries
        .filter(([, ...places]) => !places.some((place) => isIn(file, place)))
        .flatMap(([name]) => specifiersOf(file).filter((specifier) => name.test(specifier)))
        .map((specifier) => `${file} → ${specifier}`),
    );
    expect(forbidden).toEqual([]);
  });
});

describe('the APIs of others', () => {
  const outside = sources.filter((file) => isIn(file, 'api') && !isIn(file, 'api/chat-apis'));

  it('are an array that the application alone imports', () => {
    expect(outside.filter((file) => importsOf(file).includes('api/chat-apis/chat-apis.ts'))).toEqual([
      'api/app.ts',
    ]);
  });

  it('are named by no file outside their folders', () => {
    const words =
      /chat\/completions|\/v1\/(messages|responses|models)|OpenAi|ChatCompletion|\bAnthropic(?!',)/;
    expect(outside.filter((file) => words.test(readFileSync(file, 'utf8')))).toEqual([]);
  });
});

describe('what a chat says', () => {
  it('is looked into between an API and the job of a worker by chat-content.ts, and where a strict chat is refused', () => {
    const between = sources.filter((file) =>
      ['api/chat', 'api/fleet-link', 'api/admin', 'shared/fleet', 'workers/pool', 'workers/gate'].some(
        (room) => isIn(file, room),
      ),
    );
    const reads = /\.turns\b|\bturns[,)]|\bpartsOf\(/;
    expect(between.filter((file) => reads.test(codeOf(file)))).toEqual(['api/chat/conversation-changes.ts']);
  });
});

/** Files that may name one provider in a condition: its folder, the list of ids, the table, the configuration. */
const placesOfProviders = [
  ...providerIds.map((id) => `workers/providers/${id}`),
  'shared/contracts/contract.ts',
  'shared/models/provider-models.ts',
  'shared/config',
];
const provider = `['"](?:${providerIds.join('|')})['"]`;
const condition = new RegExp(
  `[!=]==?\\s*${provider}|${provider}\\s*[!=]==?|\\bcase\\s*${provider}|\\bisClaude\\b`,
  'g',
);

const conditionsIn = (text: string): string[] => text.match(condition) ?? [];

describe('a habit of a provider', () => {
  it.each([
    "if (provider !== 'vertexai') check(data);",
    "const isOwn = 'openai' === part.provider;",
    "case 'bedrock':",
    'const dialect = isClaude ? claude : gemini;',
  ])('%s is a condition', (line) => {
    expect(conditionsIn(line)).toHaveLength(1);
  });

  it('is in its folder or its row of shared/models/provider-models.ts, and in no condition elsewhere', () => {
    const conditions = sources
      .filter((file) => ['api', 'workers', 'shared'].some((room) => isIn(file, room)))
      .filter((file) => !placesOfProviders.some((place) => isIn(file, place)))
      .flatMap((file) => conditionsIn(readFileSync(file, 'utf8')).map((found) => `${file}: ${found}`));
    expect(conditions).toEqual([]);
  });
});

describe('the pages about the code', () => {
  it('begin with one that can be read at once', () => {
    const page = readFileSync('docs/architecture.md', 'utf8');
    const names = [...page.matchAll(/`(?:[\w.-]+\/)*([\w.-]+\.(?:tsx?|mjs))`/g)].map(([, name]) => name);
    expect(page.split('\n').length).toBeLessThanOrEqual(150);
    expect(new Set(names).size).toBeLessThanOrEqual(70);
  });

  it('give a name without a folder the folder of the path before it', () => {
    const page = readFileSync('docs/architecture.md', 'utf8');
    let folder = '';
    const lost: string[] = [];
    for (const [, path = '', name = ''] of page.matchAll(/`((?:[\w.-]+\/)*)([\w.-]*\.(?:tsx?|mjs))?`/g)) {
      if (path !== '') folder = path;
      if (name !== '' && !existsSync(join(folder, name))) lost.push(folder + name);
    }
    expect(lost).toEqual([]);
  });

  it.each(['architecture', 'internals', 'guarantees'])('name in %s.md only files that exist', (page) => {
    const files = readdirSync('.', { encoding: 'utf8' })
      .filter((room) => !/^(node_modules|dist|\.git|test-results)$/.test(room))
      .flatMap((room) => [room, ...namesBelow(room)]);
    const named = [...readFileSync(`docs/${page}.md`, 'utf8').matchAll(/`([\w./-]+\.(?:tsx?|mjs))`/g)].map(
      ([, name = '']) => name,
    );
    expect(named.filter((name) => !files.some((file) => isNamed(file, name)))).toEqual([]);
  });
});

/** A file without its comments. */
const codeOf = (file: string): string =>
  readFileSync(file, 'utf8').replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');

/** A page gives the path, or the end of one. */
const isNamed = (file: string, name: string): boolean => file === name || file.endsWith(`/${name}`);

const namesBelow = (room: string): string[] =>
  statSync(room).isDirectory()
    ? readdirSync(room, { recursive: true, encoding: 'utf8' }).map((name) => join(room, name))
    : [];
