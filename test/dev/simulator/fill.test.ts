import { describe, expect, it } from 'vitest';
import { fill } from '../../../dev/simulator/schemas.js';

const node = {
  type: 'object',
  properties: { name: { type: 'string' }, next: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] } },
  required: ['name', 'next'],
};
const endless = { type: 'object', properties: { a: { $ref: '#' }, b: { $ref: '#' } }, required: ['a', 'b'] };

describe('a value', () => {
  it.each([
    [{ const: 5 }, 5],
    [{ enum: ['b', 'a'] }, 'b'],
    [{ type: 'string', minLength: 6 }, 'textxx'],
    [{ type: 'string', maxLength: 2 }, 'te'],
    [{ type: 'string', format: 'date' }, '2026-01-01'],
    [{ type: 'integer', minimum: 2.5 }, 3],
    [{ type: 'integer', exclusiveMinimum: 2 }, 3],
    [{ type: 'number', minimum: 0.1, maximum: 0.2 }, 0.1],
    [{ type: 'number', exclusiveMinimum: 0, maximum: 0.5 }, 0.25],
    [{ type: 'integer', maximum: -3 }, -4],
    [{ type: 'integer', exclusiveMinimum: 0, maximum: 1 }, 1],
    [{ type: ['null', 'boolean'] }, true],
    [{ type: 'array', items: { type: 'boolean' }, minItems: 2 }, [true, true]],
    [{ anyOf: [{ type: 'null' }, { type: 'string' }] }, null],
    [
      {
        allOf: [{ type: 'object', properties: { a: { const: 1 } } }],
        type: 'object',
        properties: { b: { const: 2 } },
      },
      { b: 2, a: 1 },
    ],
    [{ type: 'object', required: ['a'], additionalProperties: { const: 1 } }, { a: 1 }],
    [{ type: 'object', required: ['a'] }, { a: 'text' }],
    [{ type: 'object', properties: { a: { const: 1 } }, anyOf: [{ required: ['a'] }] }, { a: 1 }],
    [{ type: 'string', format: 'constructor' }, 'text'],
    [{ $ref: '#/definitions/a~1b', definitions: { 'a/b': { const: 'x' } } }, 'x'],
  ])('of %j -> fits', (schema, value) => {
    expect(fill(schema)).toEqual(value);
  });

  it('of a recursive schema -> ends', () => {
    expect(JSON.stringify(fill({ $ref: '#/$defs/node', $defs: { node } }))).toMatch(
      /^\{"name":"text",.*null/,
    );
    expect(JSON.stringify(fill(endless)).length).toBeLessThan(1_000_000);
  });
});
