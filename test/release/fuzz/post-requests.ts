import fc from 'fast-check';
import { oddId } from './addresses.js';
import { bodiesOf } from './bodies.js';
import type { Header } from './client.js';
import * as conditions from './conditions.js';
import { weakCredentials, writer } from './credentials.js';
import * as headers from './headers.js';
import { numberedPosts, one, type Plan, type PlannedBody } from './plan.js';
import { requestsOf } from './requests.js';
import { canary, exactly, text, unstorable, visibleText } from './texts.js';

const longest = { content: 262_144, title: 300, author: 200, tag: 50, slug: 100 };

const slug = fc.oneof(
  { weight: 4, arbitrary: fc.stringMatching(/^[a-z0-9]{1,8}(-[a-z0-9]{1,8}){1,3}$/) },
  { weight: 1, arbitrary: fc.constantFrom('taken', 'a'.repeat(longest.slug), '0') },
);

const tags = fc.oneof(
  { weight: 4, arbitrary: fc.array(visibleText(longest.tag), { maxLength: 4 }) },
  { weight: 1, arbitrary: fc.array(exactly(longest.tag), { minLength: 20, maxLength: 20 }) },
);

/** Fields of a post that are all within their limits, some at them. */
const fields = {
  content: fc.oneof(
    { weight: 60, arbitrary: visibleText(2000) },
    { weight: 1, arbitrary: fc.constantFrom('x', 'é').map((character) => character.repeat(longest.content)) },
  ),
  title: fc.option(fc.oneof(visibleText(longest.title), fc.constant(''))),
  author: fc.option(visibleText(longest.author)),
  tags: fc.option(tags),
  slug: fc.option(slug),
  status: fc.constantFrom('published', 'published', 'draft', null),
};

const soundPost = fc.record(fields, { requiredKeys: ['content'] });
const soundPatch = fc.record(fields, { requiredKeys: [] });

/** Values of one field that are just beyond its limits, or cannot be stored. */
const beyond: fc.Arbitrary<Record<string, unknown>> = fc.oneof(
  unstorable.map((content) => ({ content })),
  fc.constantFrom('content', 'title', 'author', 'slug', 'tag').map((name) => {
    const value = 'x'.repeat(longest[name as keyof typeof longest] + 1);
    return name === 'tag' ? { tags: [value] } : { [name]: value };
  }),
  fc.constantFrom('title', 'author').chain((name) => unstorable.map((value) => ({ [name]: value }))),
  unstorable.map((tag) => ({ tags: ['fine', tag] })),
  fc.constant({ tags: Array.from({ length: 21 }, (_, i) => `tag ${i}`) }),
  fc.constant({ tags: Array.from({ length: 5000 }, () => 1) }),
  fc.constantFrom('-', 'a--b', 'A', 'a_b', 'é', 'a-', '', ' a', 'a\n').map((odd) => ({ slug: odd })),
  canary.map((mark) => ({ slug: mark })),
  fc.constantFrom('Draft', '', 'deleted', '__proto__').map((status) => ({ status })),
  canary.map((status) => ({ status })),
);

const bodies = (posts: typeof soundPost | typeof soundPatch): fc.Arbitrary<PlannedBody> =>
  bodiesOf({ sound: posts as fc.Arbitrary<object>, beyond, names: Object.keys(fields) });

const number = fc.nat(numberedPosts - 1);

/** `POST /blogs`. */
export const createPost: fc.Arbitrary<Plan> = requestsOf({
  ...{ methods: ['POST'], at: '/blogs', credentials: writer, contentType: headers.jsonType() },
  own: fc.tuple(headers.prefer, headers.idempotencyKey).map((some) => some.flat()),
  body: bodies(soundPost),
  odd: [weakCredentials, headers.oddIdempotencyKey],
});

const change = (method: 'PUT' | 'PATCH'): fc.Arbitrary<Plan> =>
  requestsOf({
    methods: [method],
    at: fc.tuple(number, fc.constantFrom('', '', '', 'U')).chain(([n, spelling]) =>
      fc.record({
        path: fc.constant(`/blogs/«id${spelling} ${n}»`),
        own: fc.tuple(headers.prefer, conditions.ifMatch(n)).map((some) => some.flat()),
      }),
    ),
    ...{ near: '/blogs/«id 1»', credentials: writer },
    contentType: fc.oneof(headers.jsonType(), headers.jsonType(mediaTypes[method])),
    body: bodies(method === 'PUT' ? soundPost : soundPatch),
    odd: [weakCredentials, conditions.oddIfMatch, oddId('/blogs'), oddId('/blogs')],
  });

const mediaTypes = { PUT: 'application/json', PATCH: 'application/merge-patch+json' };

/** `PUT /blogs/{id}`. */
export const replacePost = change('PUT');

/** `PATCH /blogs/{id}`. */
export const patchPost = change('PATCH');

/** `DELETE /blogs/{id}`; half of them of a post made for it. */
export const deletePost: fc.Arbitrary<Plan> = requestsOf({
  methods: ['DELETE'],
  at: fc
    .oneof(
      fc.constant('«fresh»'),
      number.map((n) => `«gone ${n}»`),
    )
    .map((id) => ({ path: `/blogs/${id}` })),
  ...{ near: '/blogs/«gone 1»', credentials: writer },
  own: fc.oneof(fc.constant<Header[]>([]), one('If-Match', fc.constantFrom('*', '"1-0"'))),
  body: fc.option(
    fc.constantFrom<PlannedBody>({ text: '{}', bytes: 'utf8' }, { text: 'x'.repeat(5000), bytes: 'utf8' }),
    { nil: undefined },
  ),
  odd: [weakCredentials, conditions.oddIfMatch, conditions.oddIfMatch, oddId('/blogs')],
});

/** Posts to begin with. */
export const firstPost: fc.Arbitrary<{ content: string }> = fc.record(
  { content: text.map((any) => `x${any}`), title: fields.title, tags, author: fields.author },
  { requiredKeys: ['content'] },
);
