import postgres from 'postgres';
import { describe, expect, it } from 'vitest';
import { DrizzleQueryError } from '../../../db/database/drizzle.js';
import { codeOf, errorOf, isDatabaseError, keepsConnections } from '../../../db/database/errors.js';

const coded = (code: string, more: object = {}) => Object.assign(new Error('canary'), { code, ...more });
const answered = (code: string, severity = 'ERROR') =>
  Object.assign(new postgres.PostgresError('canary'), { code, severity });
const inDrizzle = (cause: Error) => new DrizzleQueryError('select canary', ['canary'], cause);
const refused = (address: string) => coded('ECONNREFUSED', { syscall: 'connect', address });
const everywhere = () => new AggregateError([refused('::1'), refused('127.0.0.1')], 'canary');

const troubles: [string, Error, string][] = [
  ['nobody listens', refused('127.0.0.1'), 'cannot be reached (ECONNREFUSED)'],
  ['nobody listens at any of its addresses', everywhere(), 'cannot be reached (ECONNREFUSED)'],
  [
    'nobody listens, as Node tells it',
    Object.assign(everywhere(), { code: 'ECONNREFUSED' }),
    'cannot be reached (ECONNREFUSED)',
  ],
  ['it is cut off while TLS begins', coded('ECONNRESET'), 'cannot be reached (ECONNRESET)'],
  ['its name is not known at the moment', coded('EAI_AGAIN'), 'cannot be reached (EAI_AGAIN)'],
  ['it is silent', coded('NO_ANSWER'), 'cannot be reached (NO_ANSWER)'],
  ['TLS fails', coded('ERR_SSL_WRONG_VERSION_NUMBER'), 'cannot be reached (ERR_SSL_WRONG_VERSION_NUMBER)'],
  ['it offers no TLS', coded('TLS_NOT_OFFERED'), 'does not offer TLS (TLS_NOT_OFFERED)'],
  [
    'nobody vouches for it',
    coded('SELF_SIGNED_CERT_IN_CHAIN'),
    'shows a certificate that is not trusted (SELF_SIGNED_CERT_IN_CHAIN)',
  ],
  [
    'it is another one',
    coded('ERR_TLS_CERT_ALTNAME_INVALID'),
    'shows a certificate that is not trusted (ERR_TLS_CERT_ALTNAME_INVALID)',
  ],
  ['the password is wrong', answered('28P01', 'FATAL'), 'refuses or ends the connection (28P01)'],
  ['a setting is unknown', answered('42704', 'FATAL'), 'refuses or ends the connection (42704)'],
  ['the role may not connect', answered('42501', 'FATAL'), 'refuses or ends the connection (42501)'],
  ['there is no room', answered('53300', 'FATAL'), 'refuses or ends the connection (53300)'],
  ['it stops', answered('57P01', 'FATAL'), 'refuses or ends the connection (57P01)'],
  ['it is broken', answered('XX000', 'PANIC'), 'refuses or ends the connection (XX000)'],
  ['a transaction took too long', answered('25P04', 'FATAL'), 'refuses or ends the connection (25P04)'],
  ['it cannot be written to', answered('25006'), 'is read-only (25006)'],
  ['a lock is held', answered('55P03'), 'answers with an error (55P03)'],
  ['a statement was cut', answered('57014'), 'answers with an error (57014)'],
  ['a deadlock was broken', answered('40P01'), 'answers with an error (40P01)'],
  ['the disk is full', answered('53100'), 'answers with an error (53100)'],
];

describe('isDatabaseError', () => {
  it.each(troubles)('is true when %s', (_, error) => {
    expect(isDatabaseError(error)).toBe(true);
    expect(isDatabaseError(inDrizzle(error))).toBe(true);
  });

  it.each([
    ['a value is there already', answered('23505')],
    ['a text cannot be stored', answered('22021')],
    ['a statement is wrong', answered('42601')],
    ['the role may not write', answered('42501')],
    ['we are wrong', new TypeError('canary')],
    ['we are wrong, as Node says', coded('ERR_INVALID_ARG_TYPE')],
    ['several things of ours are wrong', new AggregateError([new TypeError('canary')])],
    ['it is no error', 'ECONNREFUSED' as unknown as Error],
  ])('is false when %s', (_, error) => {
    expect(isDatabaseError(error)).toBe(false);
    expect(isDatabaseError(inDrizzle(error))).toBe(false);
  });
});

describe('keepsConnections', () => {
  it.each([
    ['the statement is wrong', answered('42601')],
    ['a statement was cut', answered('57014')],
    ['a lock is held', answered('55P03')],
    ['there is no room for one more', answered('53300', 'FATAL')],
  ])('is true when %s', (_, error) => {
    expect(keepsConnections(inDrizzle(error))).toBe(true);
  });

  it.each([
    ['one was lost', coded('CONNECTION_CLOSED')],
    ['the server is silent', coded('NO_ANSWER')],
    ['the server stops', answered('57P01', 'FATAL')],
    ['the server cannot be written to', answered('25006')],
    ['we are wrong', new TypeError('canary')],
  ])('is false when %s', (_, error) => {
    expect(keepsConnections(inDrizzle(error))).toBe(false);
  });
});

describe('errorOf', () => {
  it.each(troubles)('says what is wrong, and nothing secret, when %s', (_, error, words) => {
    expect(errorOf(inDrizzle(error))).toBe(`the database ${words}`);
  });

  it('says so when there is nothing to say', () => {
    expect(errorOf(new Error('canary'))).toBe('the database cannot be reached');
    expect(codeOf(new Error('canary'))).toBeUndefined();
  });
});
