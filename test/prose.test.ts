import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

/** Constructions that make a sentence hard to read; `docs/decisions/0045-tests.md` has examples of better ones. */
const constructions = [
  /\b(?:who|whom|what|which)(?:so)?ever\b/i,
  /\b(?:nobody|somebody|anybody|everybody)\b/i,
  /\bwhom\b/i,
  /\b(?:is|are|was|were|be|been|being) (?:not )?told\b/i,
  /\b(?:of theirs|of ours|good no more)\b/i,
  /\bno more(?=[.;,:)]|$)/i,
  /(?:[,;] |^)should (?:it|they|this|that|one|there)\b/i,
  /\b(?:lest|save for)\b/i,
];
/** A doc comment that begins so names a thing by a clause: "What a job ended as". */
const clause = /^\/?\*\* What (?!.*\?)/;
/** A comment that begins so hangs on a name beside it: it makes no sense as the only line that an editor shows. */
const dangling =
  /(?:\/\*\*?\s+(?:\*\s+)?|(?<!^[ \t]*\/\/.*\n[ \t]*)\/\/ )(?:Of|Those|That of|Has|As(?! `[^`]+`, for\b)) .*/gm;
const maxUses = 25;
const maxLength = 120;

interface Line {
  readonly at: string;
  readonly text: string;
}

const read = (file: string) =>
  readFileSync(file, 'utf8')
    .split('\n')
    .map((text, n): Line => ({ at: `${file}:${n + 1}`, text }));

/** Lines of comments, and the ends of lines behind `//`. */
function commentsOf(file: string): Line[] {
  let isInside = false;
  return read(file).filter(({ text }) => {
    const line = text.trim();
    const isComment = isInside || /^(?:\/\*|\/\/)|\s\/\/ /.test(line);
    if (isInside || line.startsWith('/*')) isInside = !line.includes('*/');
    return isComment;
  });
}

/** Lines of a page, without code, tables and headings. */
function proseOf(file: string): Line[] {
  let isCode = false;
  return read(file).filter(({ text }) => {
    if (text.startsWith('```')) isCode = !isCode;
    return !isCode && !/^(?:```| {4}|\||#|!\[)/.test(text);
  });
}

/** String literals of the tables that people read: failures, help and the configuration. */
const textsOf = (file: string): Line[] => read(file).filter(({ text }) => /['`"][^'`"]* [^'`"]* /.test(text));

const code = globSync('{api,workers,shared,db,cli,dev,console,test}/**/*.{ts,tsx,mjs}', {
  exclude: ['**/generated/**', 'test/{bench,soak}/**'],
});
/** The folders of the program, which have no dangling comment. */
const complete = globSync('{api,shared,db,cli,dev,console,workers}/**/*.{ts,tsx,mjs}', {
  exclude: ['**/generated/**'],
});
const pages = globSync(['docs/*.md', 'README.md', 'CONTRIBUTING.md', 'SECURITY.md']);
const comments = code.flatMap(commentsOf);
const texts = globSync(['shared/failures.ts', 'shared/config/*.ts', 'cli/main.ts', 'cli/commands/*.ts']);
const prose = [...comments, ...pages.flatMap(proseOf), ...texts.flatMap(textsOf)];

describe('comments, docs, help and error texts', () => {
  it('has been read', () => {
    expect([comments.length > 4000, pages.length > 15, texts.length > 20]).toEqual([true, true, true]);
  });

  it(`use hard constructions ${maxUses} times at most`, () => {
    const uses = prose.filter(
      ({ text }) => clause.test(text.trim()) || constructions.some((one) => one.test(text.trim())),
    );
    if (uses.length > maxUses) expect(uses.map(({ at, text }) => `${at} ${text.trim()}`)).toEqual([]);
  });

  it.each([
    '/** Of the API process. */',
    '/**\n * Those of one user come last.\n */',
    '// As above.',
    'open(); // Has it begin anew.',
  ])('do not begin like %j', (text) => {
    expect(text.match(dangling)).toHaveLength(1);
  });

  it.each([
    '// The second line may begin\n// Of course so.',
    '/** As `publish`, for the topic of one process. */',
    "const address = 'https://As';",
  ])('may begin, or go on, like %j', (text) => {
    expect(text.match(dangling)).toBeNull();
  });

  it('begin with the subject or the verb of a sentence', () => {
    const found = complete.flatMap((file) =>
      (readFileSync(file, 'utf8').match(dangling) ?? []).map((text) => `${file} ${text}`),
    );
    expect([complete.length > 200, found]).toEqual([true, []]);
  });

  it(`have lines of ${maxLength} characters at most`, () => {
    const long = [...comments, ...pages.flatMap(proseOf)].filter(
      ({ text }) => text.length > maxLength && !text.includes('://'),
    );
    expect(long.map(({ at }) => at)).toEqual([]);
  });
});
