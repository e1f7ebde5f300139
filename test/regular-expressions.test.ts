import { globSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseAst } from 'rolldown/parseAst';
import { analyse } from 'scslre';
import { describe, expect, it, vi } from 'vitest';

/** Expressions whose time may grow faster than their text, and the reason why no text of theirs is long. */
const bounded = new Map([
  [String.raw`/\/+$/`, 'base URLs that operators set'],
  [
    String.raw`/^\s*(\d+)\s*\/\s*(\d*)\s*(ms|s|min|h)?\s*$/`,
    'a field that an operator fills in, in the browser',
  ],
  [
    String.raw`/^(?:[ \t]*\r?\n)*# +([^\r\n[\]<>&\\_]{1,300}?)[ \t]*(?:\r?\n|$)/`,
    'the first 2,000 characters of a file',
  ],
]);

/** Files that make an expression in a function, and what it is made of. */
const madeLater = new Map([
  ['api/chat-apis/mount.ts', 'the paths of our own operations, when the server starts'],
  ['api/http/conditional.ts', 'a literal, for a place of its own to go on from'],
  ['dev/simulator/behaviours.ts', 'names of our own, when it is loaded'],
]);

interface Found {
  literals: RegExp[];
  /** Whether it makes expressions of parts at all, and in functions. */
  isMaking: boolean;
  isMakingLater: boolean;
}

/** Finds the expressions below a node of a syntax tree, whose parser has made one of each literal. */
function search(node: unknown, found: Found, inFunction = false): Found {
  if (node instanceof RegExp) found.literals.push(node);
  if (typeof node !== 'object' || node === null) return found;
  const { type, callee } = node as { type?: string; callee?: { name?: string } };
  if (callee?.name === 'RegExp') {
    found.isMaking = true;
    found.isMakingLater ||= inFunction;
  }
  const isWithin = inFunction || /Function/.test(type ?? '');
  for (const child of Object.values(node)) search(child, found, isWithin);
  return found;
}

const sources = globSync('{api,workers,shared,db,cli,dev,console}/**/*.{ts,tsx}', {
  exclude: ['**/generated/**'],
}).map((file) => {
  const code = readFileSync(file, 'utf8');
  const tree = parseAst(code, { lang: file.endsWith('x') ? 'tsx' : 'ts' });
  return { file, ...search(tree, { literals: [], isMaking: false, isMakingLater: false }) };
});

/** Reported are two parts that can divide one text among them in many ways, and a part that begins anywhere. */
const isSuperLinear = (expression: RegExp): boolean => analyse(expression).reports.length > 0;

describe('a regular expression', () => {
  it.each([/(?:a+)+b/, /a*a*b/, /x.*y.*z/s, /\s+$/])(
    '%s, whose time grows faster than its text -> found',
    (expression) => {
      expect(isSuperLinear(expression)).toBe(true);
    },
  );

  it('of the source -> takes a time in proportion to its text, unless that is short', () => {
    const found = sources.flatMap(({ file, literals }) =>
      literals.filter(isSuperLinear).map((expression) => ({ file, expression: String(expression) })),
    );
    expect(sources.flatMap(({ literals }) => literals).length).toBeGreaterThan(200);
    expect(found.filter(({ expression }) => !bounded.has(expression))).toEqual([]);
    expect(new Set(found.map(({ expression }) => expression))).toEqual(new Set(bounded.keys()));
  });

  it('that a module makes of parts -> takes a time in proportion to its text', async () => {
    const made: RegExp[] = [];
    class Recorded extends RegExp {
      constructor(...given: ConstructorParameters<typeof RegExp>) {
        super(...given);
        made.push(this);
      }
    }
    vi.stubGlobal('RegExp', Recorded);
    // Loaded anew, because other tests may have loaded them.
    for (const { file, isMaking } of sources) if (isMaking) await import(`${resolve(file)}?recorded`);
    vi.unstubAllGlobals();
    expect(made.length).toBeGreaterThan(8);
    expect(made.filter(isSuperLinear).map(String)).toEqual([]);
  });

  it('that a function makes of parts -> has no outside text among them', () => {
    const files = sources.flatMap(({ file, isMakingLater }) => (isMakingLater ? [file] : []));
    expect(new Set(files)).toEqual(new Set(madeLater.keys()));
  });
});
