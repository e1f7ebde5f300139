import postgres from 'postgres';
import { expectedVersions } from '../../api/blog/post-representations.js';
import { readDataUrl } from '../../api/chat-apis/openai-chat/images.js';
import { preferenceOf } from '../../api/http/prefer.js';
import { readMarkdown } from '../../cli/posts/markdown-file.js';
import { postInput } from '../../db/posts/post-rules.js';
import { fitSchema } from '../../shared/models/json-schema.js';
import { isModelAllowed } from '../../shared/models/model-names.js';
import { unhurriedRenderer } from '../support/renderers.js';
import type { Service } from './caller.js';
import { growth, linear } from './growth.js';
import { type Figure, figure } from './report.js';

interface Work {
  /** The length of the longer text; the shorter one has a sixteenth of it. */
  readonly upTo: number;
  readonly make: (size: number) => string;
}

const blanks = (size: number): string => ' '.repeat(size);
const work = (upTo: number, ...makes: Work['make'][]): Work[] => makes.map((make) => ({ upTo, make }));

/** What outside texts go through, with the texts that would take longest. Refusals count like readings. */
const readings: Record<string, { read: (text: string) => unknown; works: Work[] }> = {
  'a title of a post': {
    read: (title) => postInput.safeParse({ content: 'x', title }),
    works: work(100_000, (size) => `a${blanks(size)}b${blanks(size)}`),
  },
  'a header If-Match': {
    read: expectedVersions,
    works: work(
      100_000,
      (size) => `"a"${blanks(size)}`,
      (size) => `,${blanks(size)}x`,
      (size) => `"a"${blanks(size)}x`,
      (size) => `"a"${blanks(size / 2)},${'\t'.repeat(size / 2)}x`,
      (size) => ','.repeat(size),
      (size) => `"${blanks(size)}`,
      (size) => '" '.repeat(size / 2),
    ),
  },
  'a header Prefer': {
    read: (header) => preferenceOf(header, 'wait'),
    works: ['"', '\\"', '"\\', ' ', '=', ';', ',', '"a', 'wait='].flatMap((odd) =>
      work(163_840, (size) => odd.repeat(size / odd.length)),
    ),
  },
  'an image': {
    read: (url) => readDataUrl(`data:${url}`),
    works: work(
      7_000_000,
      (size) => ','.repeat(size),
      (size) => `image/png;base64,${','.repeat(size)}`,
      (size) => ';base64'.repeat(size / 7),
      (size) => `image/png;base64,${'='.repeat(size)}`,
    ),
  },
  'front matter': {
    read: (yaml) => readMarkdown(`---\n${yaml}---\n`),
    works: [
      ...work(
        5000,
        (count) => `a: &a [${'*a,'.repeat(count)}]\ntags: [${'*a,'.repeat(count)}]\n`,
        (count) => `tags: [${'&a x,'.repeat(count)}]\n`,
      ),
      ...work(
        2000,
        (count) => Array.from({ length: count }, (_, number) => `a${number}: 1\n`).join(''),
        (count) => `tags: ${'['.repeat(count)}${']'.repeat(count)}\n`,
        (count) => `tags: ${'['.repeat(count)}\n`,
        (count) => `${']'.repeat(count)}\n`,
      ),
    ],
  },
  "the name of a model beside an operator's pattern": {
    read: (model) => isModelAllowed(model, { models: [`${'*a'.repeat(model.length / 2)}*b`] }),
    works: work(400_000, (size) => 'a'.repeat(size)),
  },
  'a schema': {
    read: (text) => fitSchema('anthropic', JSON.parse(text), 'format'),
    works: work(4000, (count) => {
      const allOf = Array.from({ length: count }, (_, n) => ({
        ...{ type: 'object', properties: { [`p${n}`]: { type: 'string' } }, required: [`p${n}`] },
        additionalProperties: false,
      }));
      return JSON.stringify({
        type: 'object',
        properties: { field: { allOf } },
        additionalProperties: false,
      });
    }),
  },
};

const rise = (title: string, measured: number): Figure =>
  figure(`${title}: sixteen times as much`, measured, ['≤', linear], '× the processor time');

/** How the cost of outside texts grows: 16 is linear, 256 quadratic. */
export async function growths(): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const [title, { read, works }] of Object.entries(readings)) {
    const prepare = (make: Work['make']) => (size: number) => {
      const text = make(size);
      return () => {
        try {
          return read(text);
        } catch {
          return undefined;
        }
      };
    };
    const risen: number[] = [];
    for (const { upTo, make } of works) risen.push(await growth(prepare(make), { upTo }));
    figures.push(rise(title, Math.max(...risen)));
  }
  return [...figures, await growthOfPages()];
}

/** The sanitizer looks at styles of cells that only seem costly. */
async function growthOfPages(): Promise<Figure> {
  const renderer = unhurriedRenderer();
  const risen: number[] = [];
  for (const behind of ['', 'text-align:left'])
    risen.push(
      await growth((size) => () => renderer.render(`<table><tr><td style="${behind}${blanks(size)}x">a`), {
        upTo: 60_000,
      }),
    );
  await renderer.close();
  return rise('a page of a post', Math.max(...risen));
}

/** Texts for which PostgreSQL's parser has states of its own, and what trips it up beside them. */
const searched = [
  ...'a_ 1_ a- a-1- é.é- a. aa. ./ /~ ~/ a@ a@aa. a: &a + <!-- <!--a--> <script> <!D http:// aa.aa/'.split(
    ' ',
  ),
  ...['<a ">', '<a "\\"', '漢', 'aा-', 'a_\u2003', 'a_🎉', '\u0301', 'a_^', 'snake_case_name_'],
];

/** As `growths`, for the search vector of a post, by the processor time that PostgreSQL gives for its statement. */
export async function growthOfSearch({ gateway }: Service): Promise<Figure[]> {
  let cost = 0;
  const client = postgres(gateway.store.variables.DATABASE_URL ?? '', {
    max: 1,
    connection: { client_min_messages: 'log', log_statement_stats: true },
    onnotice: ({ detail = '' }) => {
      const [, user = 0, system = 0] = /^!\s+([\d.]+) s user, ([\d.]+) s system,/m.exec(detail) ?? [];
      cost += (Number(user) + Number(system)) * 1000;
    },
  });
  const costOf = async (make: () => unknown) => {
    cost = 0;
    await client`select length(post_search_vector(null, ${String(make())}))`;
    if (cost === 0) throw new Error('PostgreSQL gave no time');
    return cost;
  };
  const risen: number[] = [];
  for (const part of searched) {
    const filled = (length: number) => () => part.repeat(Math.ceil(length / part.length)).slice(0, length);
    risen.push(await growth(filled, { upTo: 32_768, cost: costOf }));
  }
  await client.end();
  return [rise('the search vector of a post', Math.max(...risen))];
}
