import pg from 'pg';

/** How many posts the database holds before the load. */
export const seededPosts = 100_000;

const authors = 500;
const tags = 200;
const vocabulary = 20_000;
const draftsPercent = 2;

/** How common a word of the texts is: it is in about one of 2,000 posts, of 100, or of 2. */
export type Frequency = 'rare' | 'medium' | 'common';

/** The nth most frequent word comes n times less often than the first, as in natural language (Zipf's law). */
const ranks: Readonly<Record<Frequency, readonly [from: number, to: number]>> = {
  common: [10, 30],
  medium: [900, 1100],
  rare: [15_000, 19_000],
};

/** What there is to know of the posts to ask for them. */
export interface Seeded {
  readonly ids: readonly string[];
  readonly slugs: readonly string[];
  /** When some posts from all over the blog were published. */
  readonly times: readonly Date[];
  /** Published posts to change, with the tags of their versions. */
  readonly versions: readonly { readonly id: string; readonly version: number; readonly updatedAt: string }[];
  /** Texts like those of the posts. */
  readonly contents: readonly string[];
  readonly words: Readonly<Record<Frequency, readonly string[]>>;
  /** Published posts that hold one word of the kind: the least and the most of them. */
  readonly postsPerWord: Readonly<Record<Frequency, readonly [least: number, most: number]>>;
  readonly averageContent: number;
  readonly databaseBytes: number;
  readonly seconds: number;
}

/**
 * Fills an empty database with posts over a year, of about 600 characters each, the same ones each time but for their
 * ids, and leaves it as autovacuum would.
 */
export async function seedPosts(url: string): Promise<Seeded> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const startedAt = performance.now();
    await client.query('SELECT setseed(0.25)');
    await client.query(insertPosts, [seededPosts, syllables, authors, tags, draftsPercent]);
    await client.query('VACUUM (ANALYZE) posts');
    const seconds = (performance.now() - startedAt) / 1000;
    return { ...(await lookAt(client)), seconds };
  } finally {
    await client.end();
  }
}

/** A random number from 1 to the parameter, the nth of them n times less often than the first. */
const zipf = (most: string) => `floor(power(${most}::float8, random()))::int`;

const consonants = ['b', 'd', 'f', 'g', 'k', 'l', 'm', 'n', 'p', 'r', 's', 't', 'v', 'z'];
const vowels = ['a', 'e', 'i', 'o', 'u'];
const syllables = consonants.flatMap((consonant) => vowels.map((vowel) => consonant + vowel));

/** So many random words, the nth `word` in the place `place`: two syllables, and a third for those that are not frequent. */
const randomWords = (count: string) => `(
  SELECT place, CASE WHEN n >= 4900 THEN ($2::text[])[1 + n / 4900] ELSE '' END
    || ($2::text[])[1 + n / 70 % 70] || ($2::text[])[1 + n % 70] AS word
  FROM (SELECT place, 70 + ${zipf(`${vocabulary}`)} AS n FROM generate_series(1, ${count}) place) numbered
) words`;

/** The word of that rank in the texts, as `randomWords` makes it. */
function wordOf(rank: number): string {
  const inBase70 = (n: number): string =>
    (n < syllables.length ? '' : inBase70(Math.floor(n / syllables.length))) +
    syllables[n % syllables.length];
  return inBase70(rank + syllables.length);
}

// What is joined mentions the row, so that it is evaluated again for each.
const insertPosts = `
  INSERT INTO posts (id, title, content, author, tags, slug, status, published_at, created_at, updated_at)
  SELECT uuidv7(at - now()), initcap(heading), body, 'Author ' || ${zipf('$3')}, labels,
    replace(heading, ' ', '-') || '-' || n, CASE WHEN draft THEN 'draft' ELSE 'published' END,
    CASE WHEN draft THEN NULL ELSE at END, at, at
  FROM (
    SELECT n, n % 100 < $5::int AS draft, date_trunc('milliseconds', now()) - ($1::int - n) * interval '5 minutes' AS at
    FROM generate_series(1, $1::int) n
  ) post,
  LATERAL (SELECT string_agg(word, ' ') AS heading FROM ${randomWords('3 + n % 5')}) headings,
  LATERAL (
    SELECT string_agg(
      word,
      CASE WHEN place % 40 = 0 THEN E'.\\n\\n' WHEN place % 12 = 0 THEN '. ' ELSE ' ' END
    ) AS body
    FROM ${randomWords('84 + n % 61')}
  ) bodies,
  LATERAL (
    SELECT array(SELECT DISTINCT 'tag-' || ${zipf('$4')} FROM generate_series(1, n % 5)) AS labels
  ) labelled`;

async function lookAt(client: pg.Client): Promise<Omit<Seeded, 'seconds'>> {
  const rows = async <Row>(sql: string, values: unknown[] = []): Promise<Row[]> =>
    (await client.query(sql, values)).rows as Row[];
  const published = "FROM posts WHERE status = 'published'";
  const picked = await rows<{ id: string; version: number; updatedAt: Date; content: string; slug: string }>(
    `SELECT id, version, updated_at AS "updatedAt", content, slug ${published} ORDER BY random() LIMIT 20000`,
  );
  const [sizes] = await rows<{ content: string; bytes: string }>(
    'SELECT avg(length(content)) AS content, pg_database_size(current_database()) AS bytes FROM posts',
  );
  const words = wordsByFrequency();
  const count = async (frequency: Frequency): Promise<readonly [number, number]> => {
    const counts = await rows<{ posts: string }>(
      `SELECT (SELECT count(*) ${published} AND search @@ websearch_to_tsquery('english', word)) AS posts
       FROM unnest($1::text[]) word`,
      [words[frequency]],
    );
    const numbers = counts.map(({ posts }) => Number(posts));
    return [Math.min(...numbers), Math.max(...numbers)];
  };
  return {
    ids: picked.map(({ id }) => id),
    slugs: picked.map(({ slug }) => slug),
    times: picked.map(({ updatedAt }) => updatedAt),
    versions: picked.map(({ id, version, updatedAt }) => ({
      id,
      version,
      updatedAt: updatedAt.toISOString(),
    })),
    contents: picked.slice(0, 200).map(({ content }) => content),
    words,
    postsPerWord: {
      rare: await count('rare'),
      medium: await count('medium'),
      common: await count('common'),
    },
    averageContent: Number(sizes?.content),
    databaseBytes: Number(sizes?.bytes),
  };
}

const wordsPerFrequency = 20;

function wordsByFrequency(): Seeded['words'] {
  const some = ([from, to]: readonly [number, number]) =>
    Array.from({ length: wordsPerFrequency }, (_, step) =>
      wordOf(from + Math.floor((step * (to - from)) / wordsPerFrequency)),
    );
  return { rare: some(ranks.rare), medium: some(ranks.medium), common: some(ranks.common) };
}
