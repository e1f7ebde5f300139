import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseBasic, parseBearer, parseSessions } from '../../../api/access/credentials.js';

const encode = (plain: string | Uint8Array) => Buffer.from(plain).toString('base64');
const name = 'Jürgen 🎉';
const secret = 'a:secret: with: colons 🎉';
const good = encode(`${name}:${secret}`);

describe('parseBasic', () => {
  it.each([
    `Basic ${good}`,
    `basic ${good}`,
    `BASIC   ${good}`,
    `Basic ${good.replace(/=+$/, '')}`,
    `bAsIc${' '.repeat(40)}${good}`,
  ])('%j -> its name and its secret', (header) => {
    expect(parseBasic([header])).toEqual({ name, secret });
  });

  it('any name without a colon, and any secret, as long as they may be -> are read as they were written', () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 128 });
    const names = text.filter((each) => !each.includes(':'));
    fc.assert(
      fc.property(names, text, (someName, someSecret) => {
        const parsed = parseBasic([`Basic ${encode(`${someName}:${someSecret}`)}`]);
        expect(parsed).toEqual({ name: someName, secret: someSecret });
      }),
    );
    const long = { name: '🎉'.repeat(128), secret: '🎉'.repeat(512) };
    expect(parseBasic([`Basic ${encode(`${long.name}:${long.secret}`)}`])).toEqual(long);
  });

  it.each([
    ['no header', undefined],
    ['an empty header', ''],
    ['the scheme alone', 'Basic'],
    ['the scheme and a blank', 'Basic '],
    ['no blank', `Basic${good}`],
    ['a tab', `Basic\t${good}`],
    ['another scheme', `Bearer ${good}`],
    ['two credentials', `Basic ${good} ${good}`],
    ['two schemes', `Basic ${good}, Basic ${good}`],
    ['plain text', `Basic ${encodeURIComponent(name)}:secret`],
    ['what is not base64', 'Basic %%%%'],
    ['padding alone', 'Basic ===='],
    ['no colon', `Basic ${encode(name)}`],
    ['Latin-1', `Basic ${encode(Buffer.from(`${name}:${secret}`, 'latin1'))}`],
    ['bytes that are not UTF-8', `Basic ${encode(Buffer.from([0xff, 0x3a, 0xfe]))}`],
    ['a character beyond ASCII after them', `Basic ${good}\xa0`],
    ['10 KB of base64', `Basic ${encode('x:'.repeat(3750))}`],
    ['10 KB of blanks before what is right', `Basic ${' '.repeat(10_000)}${good}`],
    ['10 KB of padding', `Basic x${'='.repeat(10_000)}!`],
  ])('%s -> nothing', (_, header) => {
    expect(parseBasic(header === undefined ? [] : [header])).toBeUndefined();
  });
});

describe('parseBearer', () => {
  it.each(['Bearer writer', 'bearer writer', 'BEARER    writer', 'Bearer !odd~token=/"'])(
    '%j -> its token',
    (header) => {
      expect(parseBearer([header])).toBe(header.replace(/.* /, ''));
    },
  );

  it.each([
    ['no header', undefined],
    ['an empty header', ''],
    ['the scheme alone', 'Bearer'],
    ['an empty token', 'Bearer   '],
    ['no blank', 'Bearerwriter'],
    ['no scheme', 'writer'],
    ['two tokens', 'Bearer writer writer'],
    ['two schemes', `Bearer writer, Basic ${good}`],
    ['a token that is not ASCII', 'Bearer writ\xe9r'],
    ['credentials of chat', `Basic ${good}`],
    ['10 KB', `Bearer ${'x'.repeat(10_000)}`],
    ['10 KB of blanks before what is right', `Bearer ${' '.repeat(10_000)}writer`],
  ])('%s -> nothing', (_, header) => {
    expect(parseBearer(header === undefined ? [] : [header])).toBeUndefined();
  });
});

describe('a header that was sent twice', () => {
  it.each([
    [[`Basic ${good}`, `Basic ${good}`]],
    [[`Basic ${good}`, 'Basic eDp5']],
    [['Bearer writer', `Basic ${good}`]],
    [['Bearer writer', '']],
  ])('%j -> counts as not sent, whichever is right', (sent) => {
    expect([parseBasic(sent), parseBearer(sent)]).toEqual([undefined, undefined]);
    expect([parseBasic(sent.toReversed()), parseBearer(sent.toReversed())]).toEqual([undefined, undefined]);
  });
});

const key = 'k'.repeat(43);
const other = 'o'.repeat(43);
const parse = (...cookie: string[]) => parseSessions({ headersDistinct: { cookie } });

describe('parseSessions', () => {
  const [mine, another] = [`quillgate_session=${key}`, `quillgate_session=${other}`];

  it.each([
    [[mine], [key]],
    [[`a=b; ${mine}; c="d;e"`], [key]],
    [[`a=b;${mine}`], [key]],
    [[mine, 'a=b'], [key]],
    [[`${mine}; ${mine}`], [key]],
    [[`quillgate_session=x; ${mine}`], [key]],
    [[`${another}; ${mine}`], [other, key]],
    [
      [mine, another],
      [key, other],
    ],
  ])('%j -> each key once', (cookie, keys) => {
    expect(parse(...cookie)).toEqual(keys);
  });

  it.each([
    ['nothing'],
    ['an empty header', ''],
    ['another name', `session=${key}`],
    ['another case', `Quillgate_Session=${key}`],
    ['an empty value', 'quillgate_session='],
    ['no value', 'quillgate_session'],
    ['a short key', `quillgate_session=${key.slice(1)}`],
    ['a long key', `${mine}k`],
    ['quotes', `quillgate_session="${key}"`],
    ['other characters', `quillgate_session=${key.slice(1)}+`],
    ['a key and more', `${mine}=`],
    ['16 KB of nonsense', '=;'.repeat(8000)],
  ])('%s -> none', (_what, ...cookie) => {
    expect(parse(...cookie)).toEqual([]);
  });
});
