import { describe, expect, it } from 'vitest';
import { renderTable } from '../../../cli/output/fleet-tables.js';

describe('renderTable', () => {
  it('aligns columns, also under long names and with characters outside the BMP', () => {
    const rows = [
      ['zoë', null, 'x'],
      ['😀', 'published', 'y'],
    ];
    expect(renderTable(['name', 'state', 'very long'], rows)).toBe(
      'NAME  STATE      VERY LONG\nzoë   -          x\n😀     published  y\n',
    );
  });
});
