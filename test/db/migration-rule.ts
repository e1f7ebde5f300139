/** A file of migrations, by its name without the ending. */
export interface MigrationFile {
  readonly name: string;
  readonly sql: string;
}

/**
 * The errors of these migrations, oldest first, for their author: each has to be safe while the
 * release before it serves from the same tables (`docs/decisions/0012-versions.md`). A list of what is allowed, because
 * what is dangerous has no end; a statement that is safe and not on it gets a line here, with the reason.
 */
export function objectionsTo(files: readonly MigrationFile[]): string[] {
  const inUse = new Set<string>();
  return files.flatMap(({ name, sql }) => {
    const statements = statementsOf(sql);
    const made = new Set(statements.flatMap((statement) => tableMadeBy(statement) ?? []));
    const columns = new Set(statements.flatMap((statement) => columnMadeBy(statement) ?? []));
    const objections = statements.flatMap((statement) => {
      if (isSafeForFewRows(statement, columns)) return [];
      const objection = objectionTo(statement, (table) => made.has(table));
      return objection === undefined ? [] : [`${name}: ${objection}: ${statement.slice(0, 80)}`];
    });
    const touchesInUse = statements.some((statement) => isAbout(statement, inUse));
    for (const table of made) inUse.add(table);
    const isBounded = isLockTimeout(statements[0] ?? '');
    return touchesInUse && !isBounded ? [...objections, `${name}: ${unbounded}`] : objections;
  });
}

const unbounded =
  "begin with SET LOCAL lock_timeout = '2s', or less: who waits for a lock keeps all others waiting behind it";

const isLockTimeout = (statement: string): boolean =>
  /^set local lock_timeout = '(1?\d{1,3}ms|2000ms|[12]s)'$/.test(statement);

/** As Drizzle splits a file; each statement in one line, without comments and without what a function's body holds. */
const statementsOf = (sql: string): string[] =>
  sql
    .split('--> statement-breakpoint')
    .map((statement) =>
      statement
        .replace(/\$(\w*)\$.*?\$\1\$/gs, '$$body$$')
        .replace(/--[^\n]*/g, '')
        .replace(/\/\*.*?\*\//gs, '')
        .replace(/\s+/g, ' ')
        .trim()
        .replace(/ ?;$/, '')
        .toLowerCase(),
    )
    .filter((statement) => statement !== '');

const table = '"?([a-z_]\\w*)"?';
const tableMadeBy = (statement: string): string | undefined =>
  new RegExp(`^create table ${table} \\(`).exec(statement)?.[1];

/** `table.column` of a column that the release before knows nothing of. */
function columnMadeBy(statement: string): string | undefined {
  const [, about, column] =
    new RegExp(`^alter table ${table} add column "?([a-z_]\\w*)"? `).exec(statement) ?? [];
  return about === undefined ? undefined : `${about}.${column}`;
}

function isAbout(statement: string, tables: ReadonlySet<string>): boolean {
  return [...statement.matchAll(/[a-z_]\w*/g)].some(([word]) => tables.has(word));
}

function objectionTo(statement: string, isNew: (table: string) => boolean): string | undefined {
  if (statement.replace(/'(?:[^']|'')*'/g, "''").includes(';'))
    return 'one statement between two breakpoints';
  if (isLockTimeout(statement) || isTriggerBehindWrites(statement) || isNewSearch(statement))
    return undefined;
  // These are not read or written yet.
  if (/^create (table|function|type) (?!if not exists)/.test(statement)) return undefined;
  const [, about] =
    new RegExp(`^(?:alter table|create(?: unique)? index .*? on) ${table} `).exec(statement) ?? [];
  if (about === undefined) return 'not on the list of what is safe';
  if (isNew(about)) return undefined;
  if (statement.startsWith('create')) return 'an index on a table that is in use keeps writers waiting';
  return isPlainNewColumn(statement)
    ? undefined
    : 'a table in use only gets columns that may be null or have a constant';
}

/**
 * A change of the catalogue alone, in one lock. It runs behind the writes of every release, none of which it changes:
 * what it keeps is in a table of its own. Its author has to make sure that it cannot fail.
 */
const isTriggerBehindWrites = (statement: string): boolean =>
  /^create trigger "?\w+"? after insert or update of [\w", ]+ on "?posts"? for each row execute function \w+\(\)$/.test(
    statement,
  );

/**
 * What makes the search index of a post, with the same parameters and result: the release before writes through it.
 * Stored vectors stay until their posts change. A search has to find in either kind what the release before finds.
 */
const isNewSearch = (statement: string): boolean =>
  statement ===
  'create or replace function post_search_vector(title text, content text) returns tsvector language plpgsql immutable parallel safe as $body$';

/** Both change the catalogue alone (PostgreSQL 11 and later), and the release before can insert without them. */
const isPlainNewColumn = (statement: string): boolean =>
  new RegExp(
    `^alter table ${table} add column "?\\w+"? (?!\\w*serial)(double precision|\\w+)( ?\\(\\d+\\))?( with time zone)?(\\[\\])?( default ${constant}( not null)?)?$`,
  ).test(statement) && !/ (generated|references|unique|primary|check|collate)\b/.test(statement);

const constant = "(?:-?\\d+|true|false|'(?:[^']|'')*'(?:::[a-z]+(?:\\[\\])?)?)";

/**
 * Users, tokens and the audit are made by people: there are so few that all of their rows are rewritten, looked through
 * and indexed within milliseconds. They may get what keeps other tables from being used for too long, as long as the
 * release before can go on with them:
 * - ids, and an index or a reference that only concerns new columns; a row that they refer to can still be deleted,
 * - values in one new column, and rows that are not there yet,
 * - a trigger that completes what the release before inserts,
 * - an index on the audit, which is written at each change.
 */
function isSafeForFewRows(statement: string, newColumns: ReadonlySet<string>): boolean {
  return fewRows.some((pattern) => {
    const { t, c = '' } = pattern.exec(statement)?.groups ?? {};
    return t !== undefined && (c === '' || newColumns.has(`${t}.${c}`));
  });
}

const small = '"?(?<t>users|tokens)"?';
const column = '"?(?<c>[a-z_]\\w*)"?';
const fewRows = [
  `^alter table ${small} add column "?\\w+"? uuid default gen_random_uuid\\(\\) not null$`,
  `^alter table ${small} add constraint "?\\w+"? unique ?\\(${column}\\)$`,
  `^alter table ${small} add constraint "?\\w+"? foreign key \\(${column}\\) references "?\\w+"? ?\\("?\\w+"?\\) on delete (set null|cascade)( on update no action)?$`,
  `^update ${small} set ${column} = [\\w".]+ (from|where) `,
  `^insert into ${small} .* on conflict \\("?\\w+"?\\) do nothing$`,
  '^create index "?\\w+"? on "?(?<t>audit)"? using btree \\("?\\w+"?(,"?\\w+"?)*\\)$',
  `^create trigger "?\\w+"? before insert on ${small} for each row execute function \\w+\\(\\)$`,
].map((pattern) => new RegExp(pattern));
