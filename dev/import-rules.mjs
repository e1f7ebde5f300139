// Writes biome.imports.json, which biome.json extends: who may import what, from the two tables below. Biome has no way
// to add to a rule: of all overrides that fit a file the last one's options stand alone, so each has to say everything.
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const roomNames = ['api', 'workers', 'db', 'cli', 'dev', 'console', 'test'];

/** Each folder, the other folders that it may import from beside `shared`, and what its offenders are told. */
const rooms = [
  {
    room: 'shared',
    uses: [],
    message: 'shared is the leaf both sides agree on: it imports nothing of ours.',
  },
  { room: 'db', uses: [], message: 'db may use shared alone.' },
  {
    room: 'api',
    uses: ['db'],
    message: 'api may use shared and db; it meets the workers only through the queue and the relay.',
  },
  {
    room: 'workers',
    uses: [],
    message: 'workers may use shared alone; they meet the API only through the queue and the relay.',
  },
  { room: 'cli', uses: ['db', 'api'], message: "cli may use shared, db and the API's functions." },
];

/** How deep folders lie in one another. */
const upwards = ['../', '../../', '../../../', '../../../../'];

const inProvidersFile = "Each SDK lives in its provider's file.";

/** Libraries, where alone they may be imported, and what offenders are told. A place is a folder, a file, or both. */
const libraries = [
  {
    group: ['express', 'express/**', 'helmet', 'tsoa', '@tsoa/**', 'swagger-ui-dist'],
    places: ['api/**'],
    message: 'Express and tsoa live in api/.',
  },
  {
    group: ['drizzle-orm', 'drizzle-orm/**'],
    places: ['db/database/drizzle.ts'],
    message: 'Drizzle is loaded by db/database/drizzle.ts, which says why.',
  },
  {
    group: ['postgres'],
    places: ['db/**'],
    message: 'postgres lives in db/.',
  },
  {
    group: ['bullmq', 'ioredis', 'pg'],
    places: ['shared/queue/queue-store.ts', 'shared/queue/stores/**', 'api/**', 'workers/pool/pool.ts'],
    message:
      'BullMQ and its drivers live in shared/queue/, in api/ where it enqueues and in workers/pool/pool.ts.',
  },
  {
    group: ['opossum'],
    places: ['workers/job/breaker.ts'],
    message: 'opossum lives in workers/job/breaker.ts.',
  },
  { group: ['openai', 'openai/**'], places: ['workers/providers/openai.ts'], message: inProvidersFile },
  { group: ['@anthropic-ai/**'], places: ['workers/providers/anthropic.ts'], message: inProvidersFile },
  {
    group: ['@aws-sdk/**', '@smithy/**'],
    places: ['workers/providers/bedrock.ts'],
    message: inProvidersFile,
  },
  {
    group: ['@google/**', 'google-auth-library'],
    places: ['workers/providers/vertexai.ts'],
    message: inProvidersFile,
  },
  { group: ['pino'], places: ['shared/runtime/log.ts'], message: 'pino lives in shared/runtime/log.ts.' },
  {
    group: ['@prometheus-io/client'],
    places: ['shared/metrics/instruments.ts'],
    message: 'The client of Prometheus lives in shared/metrics/instruments.ts.',
  },
  { group: ['commander'], places: ['cli/**'], message: 'commander lives in cli/.' },
  {
    group: [
      'markdown-it',
      'markdown-it-footnote',
      'sanitize-html',
      'feedsmith',
      'rate-limiter-flexible',
      'lru-cache',
    ],
    places: ['api/**'],
    message: 'Rendering, feeds and the login limiter live in api/.',
  },
  { group: ['uuid', '@sindresorhus/slugify'], places: ['db/**'], message: 'Ids and slugs are made in db/.' },
  {
    group: ['cli-progress', 'yaml'],
    places: ['cli/**'],
    message: "The command line's libraries live in cli/.",
  },
  { group: ['yocto-spinner'], places: [], message: 'The spinner lives in dev/stages.ts.' },
];

const target = process.argv[2] ?? join(dirname(fileURLToPath(import.meta.url)), '..', 'biome.imports.json');
writeFileSync(target, `${JSON.stringify({ overrides: overrides() }, null, 2)}\n`);

/** Folders first: what is said of a place in one of them stands instead. */
function overrides() {
  const folders = rooms.map(({ room }) => `${room}/**`);
  const places = libraries.flatMap((library) => library.places).filter((place) => !folders.includes(place));
  return [...folders, ...new Set(places)].map((place) => ({
    includes: [place],
    linter: {
      rules: {
        style: { noRestrictedImports: { level: 'error', options: { patterns: patternsFor(place) } } },
      },
    },
  }));
}

function patternsFor(place) {
  const { room, uses, message } = rooms.find((one) => place.startsWith(`${one.room}/`));
  const forbidden = roomNames.filter((name) => name !== room && !uses.includes(name));
  return [
    { group: forbidden.flatMap((name) => upwards.map((up) => `${up}${name}/**`)), message },
    ...libraries
      .filter(({ places }) => !places.includes(place) && !places.includes(`${room}/**`))
      .map((library) => ({ group: library.group, message: library.message })),
  ];
}
