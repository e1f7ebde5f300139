import { closeSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { rotateLog } from '../../dev/child-program.js';
import { makeFolder } from '../support/folders.js';

let folder: string;
let file: string;
/** As a program holds its log. */
let log: number;
beforeEach(() => {
  folder = makeFolder();
  file = join(folder, 'api.log');
  log = openSync(file, 'a');
});
afterEach(() => closeSync(log));

describe('rotateLog', () => {
  it('leaves a small log, and one that is not there', () => {
    writeSync(log, 'one\n');
    rotateLog(file, 10);
    rotateLog(join(folder, 'none.log'), 10);
    expect(readdirSync(folder)).toEqual(['api.log']);
  });

  it('keeps what was written last, and two files of what was before, while the program writes on', () => {
    for (const line of ['first line\n', 'second line\n', 'third line\n']) {
      writeSync(log, line);
      rotateLog(file, 10);
    }
    writeSync(log, 'fourth\n');
    const kept = (name: string) => readFileSync(join(folder, name), 'utf8');
    expect(readdirSync(folder).sort()).toEqual(['api.log', 'api.log.1', 'api.log.2']);
    expect([kept('api.log'), kept('api.log.1'), kept('api.log.2')]).toEqual([
      'fourth\n',
      'third line\n',
      'second line\n',
    ]);
  });
});
