import { describe, expect, it } from 'vitest';
import { checkSchemas } from '../../../shared/models/schema-bounds.js';

type Json = Record<string, unknown>;
const text = { type: 'string' };
const deep = (levels: number) =>
  Array.from({ length: levels - 1 }).reduce<Json>((schema) => ({ items: schema }), {});

describe('checkSchemas', () => {
  const wide = (count: number) => ({ enum: Array.from({ length: count }, () => 1) });

  it('takes schemas within the bounds, and what only looks like a reference', () => {
    const schema = {
      properties: { $ref: text, default: { $ref: '#/$defs/a~1b%20c' } },
      default: { $ref: 'x' },
      $defs: { 'a/b c': { enum: [{ $ref: 1 }] } },
    };
    expect(checkSchemas([schema, deep(32), wide(9000)])).toBeUndefined();
    expect(checkSchemas([])).toBeUndefined();
  });

  it.each<[string, unknown[], path: string[]]>([
    ['33 levels', [{}, deep(33)], ['1']],
    ['10,000 levels', [deep(9999)], ['0']],
    ['values', [wide(5000), wide(5000)], ['1']],
    ['a million values', [wide(1_000_000)], ['0']],
    ['a long text', [{ description: 'x'.repeat(262_145) }], ['0']],
    ['long texts together', Array.from({ length: 5 }, () => ({ title: 'x'.repeat(60_000) })), ['4']],
    ['a long name', [{ properties: { ['x'.repeat(300_000)]: {} } }], ['0']],
    ['bytes that are no characters', [{ title: 'ß'.repeat(131_072) }], []],
    ['another document', [text, { items: { $ref: 'https://example.org/a' } }], ['1', 'items', '$ref']],
    ['nothing', [{ $ref: '#/$defs/a' }], ['0', '$ref']],
    ['what an object has by itself', [{ $ref: '#/constructor' }], ['0', '$ref']],
    ['no text', [{ $ref: 1 }], ['0', '$ref']],
    ['a list with a reference', [{ $ref: ['#'] }], ['0', '$ref']],
    ['a wrong escape', [{ $ref: '#/%' }], ['0', '$ref']],
  ])('refuses %s', (_, schemas, path) => {
    expect(checkSchemas(schemas)).toEqual({ path, detail: expect.any(String) });
  });
});
