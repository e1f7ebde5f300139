import { globSync, readFileSync } from 'node:fs';
import { parseAst } from 'rolldown/parseAst';
import { describe, expect, it } from 'vitest';

/** The folders of the program; tests may spread a literal. */
const rooms = ['api', 'shared', 'db', 'cli', 'dev', 'console', 'workers'];

interface Node {
  readonly type: string;
  readonly start: number;
  /** Of a spread. */
  readonly argument?: Node;
  /** Of `(x)`, `x as T` and `x satisfies T`. */
  readonly expression?: Node;
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && 'type' in value && !(value instanceof RegExp);

/** Below a node of a syntax tree, the places of spreads of objects and arrays that are written on the spot. */
function spreadLiterals(node: unknown): number[] {
  if (Array.isArray(node)) return node.flatMap(spreadLiterals);
  if (!isNode(node)) return [];
  const isOne = /^(?:JSX)?Spread/.test(node.type) && isLiteral(node.argument);
  return [...(isOne ? [node.start] : []), ...Object.values(node).flatMap(spreadLiterals)];
}

function isLiteral(node: Node | undefined): boolean {
  if (!node) return false;
  if (/^(?:Parenthesized|TSAs|TSSatisfies)Expression$/.test(node.type)) return isLiteral(node.expression);
  return /^(?:Object|Array)Expression$/.test(node.type);
}

const read = (code: string, file = 'x.ts') =>
  spreadLiterals(parseAst(code, { lang: file.endsWith('x') ? 'tsx' : 'ts' }));

describe('a literal with fields or elements', () => {
  it.each(['f({ ...{ a, b }, c })', 'f([...[a, b], c])', 'f(...[a, b])', 'f({ ...({ a: 1 } as const) })'])(
    'is found where it is spread: %s',
    (code) => {
      expect(read(code)).toHaveLength(1);
    },
  );

  it.each(['f({ ...(a && { b }) })', 'f([...a, ...(b ? [c] : [])])', 'f(...[a, ...b].map(g))'])(
    'may depend on a condition, or be made into another: %s',
    (code) => {
      expect(read(code)).toEqual([]);
    },
  );

  it('has each of them on a line instead of being spread', () => {
    const files = globSync(`{${rooms.join()}}/**/*.{ts,tsx}`, { exclude: ['**/generated/**'] });
    const found = files.flatMap((file) => {
      const code = readFileSync(file, 'utf8');
      return read(code, file).map((at) => `${file}:${code.slice(0, at).split('\n').length}`);
    });
    expect([files.length > 200, found]).toEqual([true, []]);
  });
});
