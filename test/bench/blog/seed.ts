import pg from 'pg';
import { toCursor } from '../../../api/blog/post-query.js';

const [posts, authors, tags, vocabulary, draftsPercent] = [100_000, 500, 200, 20_000, 2];

/** What there is to know of the posts to ask for them. */
export interface Seeded {
  readonly ids: readonly string[];
  readonly slugs: readonly string[];
  /** Texts like those of the posts. */
  readonly contents: readonly string[];
  /** Of the 500th page of twenty. */
  readonly cursor: string;
  /** A rare word is in about one of 2,000 posts, a medium one in one of 100, a common one in every other. */
  readonly words: Readonly<Record<'rare' | 'medium' | 'common', readonly string[]>>;
}

/**
 * Fills an empty database with posts over a year, of about 600 characters each, the same ones each time but for their
 * ids, and leaves it as autovacuum would.
 */
export async function seedPosts(url: string): Promise<Seeded> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query('SELECT setseed(0.25)');
    await client.query(insertPosts, [posts, syllables, authors, tags, draftsPercent]);
    await client.query('VACUUM (ANALYZE) posts');
    const published = "FROM posts WHERE status = 'published' ORDER BY";
    const { rows } = await client.query(`SELECT id, content, slug ${published} random() LIMIT 20000`);
    const newest = `SELECT id, sorted_at AS "sortedAt" ${published} sorted_at DESC, id DESC`;
    const far = await client.query(`${newest} OFFSET 9979 LIMIT 1`);
    const words = (rank: number) => Array.from({ length: 20 }, (_, step) => wordOf(rank + step));
    return {
      ids: rows.map(({ id }) => id),
      slugs: rows.map(({ slug }) => slug),
      contents: rows.slice(0, 200).map(({ content }) => content),
      cursor: toCursor(far.rows[0]),
      words: { rare: words(15_000), medium: words(900), common: words(10) },
    };
  } finally {
    await client.end();
  }
}

/** A random number from 1 to the parameter, the nth of them n times less often than the first, as words are (Zipf's law). */
const zipf = (most: string) => `floor(power(${most}::float8, random()))::int`;

const syllables = [...'bdfgklmnprstvz'].flatMap((consonant) =>
  [...'aeiou'].map((vowel) => consonant + vowel),
);

/** So many random words, the nth `word` in the place `place`: two syllables, and a third for those that are not frequent. */
const randomWords = (count: string) => `(
  SELECT place, CASE WHEN n >= 4900 THEN ($2::text[])[1 + n / 4900] ELSE '' END
    || ($2::text[])[1 + n / 70 % 70] || ($2::text[])[1 + n % 70] AS word
  FROM (SELECT place, 70 + ${zipf(`${vocabulary}`)} AS n FROM generate_series(1, ${count}) place) numbered
) words`;

/** The word of that rank in the texts, as `randomWords` makes it. */
function wordOf(rank: number): string {
  const inBase70 = (n: number): string => (n < 70 ? '' : inBase70(Math.floor(n / 70))) + syllables[n % 70];
  return inBase70(rank + 70);
}

// What is joined mentions the row, so that it is evaluated again for each.
const insertPosts = `
  INSERT INTO posts (id, title, content, author, tags, slug, status, published_at, created_at, updated_at)
  SELECT uuidv7(at - now()), initcap(heading), body, 'Author ' || ${zipf('$3')}, labels,
    replace(heading, ' ', '-') || '-' || n, CASE WHEN n % 100 < $5::int THEN 'draft' ELSE 'published' END,
    CASE WHEN n % 100 < $5::int THEN NULL ELSE at END, at, at
  FROM (
    SELECT n, date_trunc('milliseconds', now()) - ($1::int - n) * interval '5 minutes' AS at
    FROM generate_series(1, $1::int) n
  ) post,
  LATERAL (SELECT string_agg(word, ' ') AS heading FROM ${randomWords('3 + n % 5')}) headings,
  LATERAL (
    SELECT string_agg(word, CASE WHEN place % 40 = 0 THEN E'.\\n\\n' ELSE ' ' END) AS body
    FROM ${randomWords('84 + n % 61')}
  ) bodies,
  LATERAL (SELECT array(SELECT DISTINCT 'tag-' || ${zipf('$4')} FROM generate_series(1, n % 5)) AS labels) labelled`;
