import fc from 'fast-check';
import { oddAddress, oddId, strangeQuery } from './addresses.js';
import { brokenBody, jsonBody, withUnknownFields, withWrongType } from './bodies.js';
import * as conditions from './conditions.js';
import * as credentials from './credentials.js';
import * as headers from './headers.js';
import { numberedPosts, type Plan, type PlannedBody } from './plan.js';
import { canary, exactly, text, unstorable, visibleText } from './texts.js';
import { twisted } from './twist.js';

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
const names = Object.keys(fields) as (keyof typeof fields)[];

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

const bodies = (posts: typeof soundPost | typeof soundPatch): fc.Arbitrary<PlannedBody> => {
  const any: fc.Arbitrary<object> = posts as fc.Arbitrary<object>;
  const broken = fc.tuple(any, beyond).map(([post, fault]) => ({ ...post, ...fault }));
  return fc.oneof(
    { weight: 12, arbitrary: jsonBody(any) },
    { weight: 3, arbitrary: jsonBody(withUnknownFields(any)) },
    { weight: 4, arbitrary: jsonBody(broken) },
    { weight: 3, arbitrary: jsonBody(withWrongType(any, names)) },
    { weight: 2, arbitrary: brokenBody(any) },
  );
};

const number = fc.nat(numberedPosts - 1);

/** `POST /blogs`. */
export const createPost: fc.Arbitrary<Plan> = twisted(
  fc.record({
    method: fc.constant('POST'),
    path: fc.constant('/blogs'),
    query: strangeQuery,
    credentials: credentials.writer,
    contentType: headers.jsonType(),
    own: fc.tuple(headers.prefer, headers.idempotencyKey).map((some) => some.flat()),
    others: headers.others,
    body: bodies(soundPost),
  }),
  fc.oneof(
    credentials.wrongCredentials,
    credentials.weakCredentials,
    headers.oddMethod,
    headers.oddMediaType,
    headers.oddEncoding,
    headers.oddIdempotencyKey,
    headers.unreadableHeaders,
    oddAddress('/blogs'),
  ),
);

const change = (method: 'PUT' | 'PATCH'): fc.Arbitrary<Plan> => {
  const plans = fc.tuple(number, fc.constantFrom('', '', '', 'U')).chain(([n, spelling]) =>
    fc.record({
      method: fc.constant(method),
      path: fc.constant(`/blogs/«id${spelling} ${n}»`),
      query: strangeQuery,
      credentials: credentials.writer,
      contentType: fc.oneof(headers.jsonType(), headers.jsonType(mediaTypes[method])),
      own: fc.tuple(headers.prefer, conditions.ifMatch(n)).map((some) => some.flat()),
      others: headers.others,
      body: method === 'PUT' ? bodies(soundPost) : bodies(soundPatch),
    }),
  );
  const twists = [
    credentials.wrongCredentials,
    credentials.weakCredentials,
    headers.oddMethod,
    headers.oddMediaType,
    headers.oddEncoding,
    conditions.oddIfMatch,
    headers.unreadableHeaders,
    oddAddress('/blogs/«id 1»'),
    oddId('/blogs'),
    oddId('/blogs'),
  ];
  return twisted(plans, fc.oneof(...twists));
};

const mediaTypes = { PUT: 'application/json', PATCH: 'application/merge-patch+json' };

/** `PUT /blogs/{id}`. */
export const replacePost = change('PUT');

/** `PATCH /blogs/{id}`. */
export const patchPost = change('PATCH');

/** `DELETE /blogs/{id}`; half of them of a post made for it. */
export const deletePost: fc.Arbitrary<Plan> = twisted(
  fc.record({
    method: fc.constant('DELETE'),
    path: fc.oneof(
      fc.constant('/blogs/«fresh»'),
      number.map((n) => `/blogs/«gone ${n}»`),
    ),
    query: strangeQuery,
    credentials: credentials.writer,
    own: fc.oneof(
      fc.constant<[]>([]),
      fc.constantFrom('*', '"1-0"').map((tag): [[string, string]] => [['If-Match', tag]]),
    ),
    others: headers.others,
    body: fc.option(
      fc.constantFrom<PlannedBody>({ text: '{}', bytes: 'utf8' }, { text: 'x'.repeat(5000), bytes: 'utf8' }),
      { nil: undefined },
    ),
  }),
  fc.oneof(
    credentials.wrongCredentials,
    credentials.weakCredentials,
    headers.oddMethod,
    conditions.oddIfMatch,
    conditions.oddIfMatch,
    headers.unreadableHeaders,
    oddAddress('/blogs/«gone 1»'),
    oddId('/blogs'),
  ),
);

/** Posts to begin with. */
export const firstPost: fc.Arbitrary<{ content: string }> = fc.record(
  { content: text.map((any) => `x${any}`), title: fields.title, tags, author: fields.author },
  { requiredKeys: ['content'] },
);
