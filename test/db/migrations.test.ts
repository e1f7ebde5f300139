import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import journal from '../../db/migrations/meta/_journal.json' with { type: 'json' };
import { isInHistory, olderCommit } from '../compatibility/older-release.js';
import { objectionsTo } from './migration-rule.js';

const hasHistory = await isInHistory();
const folder = 'db/migrations';
const read = (name: string) => readFileSync(`${folder}/${name}.sql`, 'utf8');
const posts = { name: '0000', sql: 'CREATE TABLE "posts" ("id" uuid PRIMARY KEY, "slug" text);' };
const objections = (...statements: string[]) =>
  objectionsTo([posts, { name: '0001', sql: statements.join('--> statement-breakpoint\n') }]);
const bounded = "SET LOCAL lock_timeout = '2s';";

describe('the migrations', () => {
  it('are safe while the release before them serves', () => {
    expect(objectionsTo(journal.entries.map(({ tag }) => ({ name: tag, sql: read(tag) })))).toEqual([]);
  });

  it('are all in the journal, each later than the one before', () => {
    const files = readdirSync(folder).filter((name) => name.endsWith('.sql'));
    expect(journal.entries.map(({ tag }) => `${tag}.sql`)).toEqual(files.sort());
    const times = journal.entries.map(({ when }) => when);
    expect(times).toEqual([...new Set(times)].sort((a, b) => a - b));
  });

  it.runIf(hasHistory)('go forward only: what the release before has applied is as it was', () => {
    const older = (path: string) =>
      execFileSync('git', ['show', `${olderCommit}:${path}`], { encoding: 'utf8' });
    const entries: typeof journal.entries = JSON.parse(older(`${folder}/meta/_journal.json`)).entries;
    expect(journal.entries.slice(0, entries.length)).toEqual(entries);
    for (const { tag } of entries) expect(read(tag)).toBe(older(`${folder}/${tag}.sql`));
  });
});

describe('objectionsTo', () => {
  it.each([
    'ALTER TABLE "posts" ADD COLUMN "summary" text;',
    'ALTER TABLE "posts" ADD COLUMN "seen_at" timestamp (3) with time zone;',
    'ALTER TABLE "posts" ADD COLUMN "views" integer DEFAULT 0 NOT NULL;',
    'ALTER TABLE "posts" ADD COLUMN "links" text[] DEFAULT \'{}\'::text[] NOT NULL;',
    'ALTER TABLE "posts" ADD COLUMN "note" text DEFAULT \'it\'\'s; drop table\' NOT NULL;',
  ])('lets through, with a bound for its lock: %s', (statement) => {
    expect(objections(bounded, statement)).toEqual([]);
    expect(objections(statement)).toEqual([expect.stringContaining('lock_timeout')]);
  });

  const withColumn = [bounded, 'ALTER TABLE "tokens" ADD COLUMN "user_id" uuid;'];

  it.each([
    'ALTER TABLE "users" ADD COLUMN "id" uuid DEFAULT gen_random_uuid() NOT NULL;',
    'ALTER TABLE "tokens" ADD CONSTRAINT "u" UNIQUE("user_id");',
    'ALTER TABLE "tokens" ADD CONSTRAINT "f" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE set null;',
    'UPDATE "tokens" SET "user_id" = "users"."id" FROM "users" WHERE "users"."name" = "tokens"."owner";',
    'INSERT INTO "users" ("name") SELECT "owner" FROM "tokens" ON CONFLICT ("name") DO NOTHING;',
    'CREATE TRIGGER "t" BEFORE INSERT ON "tokens" FOR EACH ROW EXECUTE FUNCTION f();',
  ])('lets through, where there are few rows: %s', (statement) => {
    expect(objections(...withColumn, statement)).toEqual([]);
    const elsewhere = statement.replaceAll('"users"', '"posts"').replaceAll('"tokens"', '"posts"');
    expect(objections(...withColumn, elsewhere)).toEqual([expect.stringMatching(/^0001: /)]);
  });

  it.each([
    'ALTER TABLE "tokens" ADD CONSTRAINT "u" UNIQUE("owner");',
    'ALTER TABLE "tokens" ADD CONSTRAINT "f" FOREIGN KEY ("user_id") REFERENCES "users"("id");',
    'ALTER TABLE "tokens" ADD CONSTRAINT "f" FOREIGN KEY ("owner") REFERENCES "users"("name") ON DELETE cascade;',
    'UPDATE "tokens" SET "owner" = "users"."id" FROM "users" WHERE true;',
    'UPDATE "tokens" SET "user_id" = "users"."id", "owner" = \'x\' FROM "users" WHERE true;',
    'INSERT INTO "users" ("name") SELECT "owner" FROM "tokens";',
    'DELETE FROM "tokens" WHERE "user_id" IS NULL;',
    'CREATE TRIGGER "t" BEFORE DELETE ON "tokens" FOR EACH ROW EXECUTE FUNCTION f();',
  ])('objects, also where there are few rows, to %s', (statement) => {
    expect(objections(...withColumn, statement)).toEqual([expect.stringMatching(/^0001: /)]);
  });

  it.each([
    'DROP TABLE "posts";',
    'DROP INDEX "posts_slug";',
    'TRUNCATE posts;',
    'ALTER TABLE "posts" DROP COLUMN "slug";',
    'ALTER TABLE "posts" RENAME COLUMN "slug" TO "name";',
    'ALTER TABLE "posts" RENAME TO "articles";',
    'ALTER TABLE "posts" ALTER COLUMN "slug" SET NOT NULL;',
    'ALTER TABLE "posts" ALTER COLUMN "slug" SET DATA TYPE varchar;',
    'ALTER TABLE "posts" ADD COLUMN "n" integer NOT NULL;',
    'ALTER TABLE "posts" ADD COLUMN "n" serial;',
    'ALTER TABLE "posts" ADD COLUMN "n" uuid DEFAULT gen_random_uuid() NOT NULL;',
    'ALTER TABLE "posts" ADD COLUMN "n" text GENERATED ALWAYS AS (slug) STORED;',
    'ALTER TABLE "posts" ADD COLUMN "n" text UNIQUE;',
    'ALTER TABLE "posts" ADD COLUMN "n" text, DROP COLUMN "slug";',
    'ALTER TABLE "posts" ADD CONSTRAINT "c" CHECK (slug <> \'\');',
    'CREATE INDEX "posts_slug" ON "posts" USING btree ("slug");',
    'CREATE OR REPLACE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT 1 $$;',
    'CREATE OR REPLACE FUNCTION post_search_vector(title text, content text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$ BEGIN END $$;',
    'UPDATE posts SET slug = id::text;',
    'CREATE TABLE "fine" ("id" uuid); DROP TABLE "posts";',
    'LOCK TABLE posts;',
  ])('objects to %s', (statement) => {
    expect(objections(bounded, statement)).toEqual([expect.stringMatching(/^0001: /)]);
  });

  it.each(["SET LOCAL lock_timeout = '0';", "SET LOCAL lock_timeout = '1min';", 'SELECT 1;'])(
    'takes %s for no bound',
    (statement) => {
      expect(objections(statement, 'ALTER TABLE "posts" ADD COLUMN "n" text;')).not.toEqual([]);
    },
  );
});
