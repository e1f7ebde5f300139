import { describe, expect, it } from 'vitest';
import { parseOptions } from './options.js';

const parse = (line: string, environment: NodeJS.ProcessEnv = {}) =>
  parseOptions(line === '' ? [] : line.split(' '), environment);

describe('parseOptions', () => {
  it('compares with nothing unless it is asked to', () => {
    expect(parse('', { REDIS_URL: 'redis://example' })).toMatchObject({
      against: undefined,
      peer: undefined,
      stores: ['embedded', 'redis'],
      connections: [1, 32, 128, 1000],
      latenciesMs: [0, 500],
      seconds: 10,
      redisUrl: 'redis://example',
    });
  });

  it('measures streams when it is asked to', () => {
    expect(parse('')).toMatchObject({ subjects: ['chat', 'blog'], apis: [1, 4, 16] });
    expect(parse('--only streams --streams 5,7')).toMatchObject({
      subjects: ['streams'],
      streams: [5, 7],
      rounds: 2,
    });
  });

  it('has shorter defaults for a comparison, on servers of its own', () => {
    expect(parse('--against HEAD~1', { REDIS_URL: 'redis://example' })).toMatchObject({
      against: 'HEAD~1',
      rounds: 4,
      connections: [1, 32, 128],
      latenciesMs: [0],
      seconds: 1,
      redisUrl: undefined,
    });
  });

  it('measures chats and streams on Redis beside another gateway', () => {
    expect(parse('--peer portkey', { REDIS_URL: 'redis://example' })).toMatchObject({
      peer: 'portkey',
      subjects: ['chat', 'streams'],
      stores: ['redis'],
      connections: [1, 32, 128, 1000],
      latenciesMs: [0, 60, 500],
      rounds: 5,
      redisUrl: undefined,
    });
    expect(parse('--peer portkey --only streams --rounds 1')).toMatchObject({
      subjects: ['streams'],
      rounds: 1,
    });
  });

  it('holds chats in flight beside another gateway', () => {
    expect(parse('--peer portkey --only in-flight')).toMatchObject({
      subjects: ['in-flight'],
      inFlight: [
        { connections: 1000, latencyMs: 2000 },
        { connections: 5000, latencyMs: 15_000 },
      ],
    });
    expect(parse('--peer portkey --only in-flight --in-flight 7:300')).toMatchObject({
      inFlight: [{ connections: 7, latencyMs: 300 }],
    });
  });

  it('guards by a short run beside the other gateway', () => {
    expect(parse('--guard')).toMatchObject({
      ...{ guard: 'compare', peer: 'portkey', subjects: ['chat'], stores: ['redis'] },
      ...{ connections: [1, 32, 128], latenciesMs: [0], seconds: 2, rounds: 5 },
    });
    expect(parse('--guard --record')).toMatchObject({ guard: 'record' });
    expect(parse('--peer portkey')).toMatchObject({ guard: undefined });
  });

  it('takes what is asked for instead of a default', () => {
    expect(parse('--against HEAD --rounds 2 --seconds 3 --connections 7 --latencies 20')).toMatchObject({
      rounds: 2,
      connections: [7],
      latenciesMs: [20],
      seconds: 3,
    });
  });

  it.each([
    ['--rounds 3', '--rounds: goes with --against, --peer, streams or blog-peer'],
    ['--only in-flight', '--only: in-flight goes with --peer'],
    ['--in-flight 5:10:15', '--in-flight: 5:10:15 is not connections:milliseconds'],
    ['--in-flight 1000', '--in-flight:  is not a whole number from 1 to 30000'],
    ['--peer portkey --only api-processes', '--only: api-processes does not go with --peer'],
    ['--record', '--record: goes with --guard'],
    ['--guard --against HEAD', '--guard: does not go with --against'],
    ['--guard --connections 7', '--connections: does not go with --guard, whose rows are always the same'],
    ['--peer litellm', '--peer: litellm is none of portkey'],
    ['--peer portkey --against HEAD', '--peer: does not go with --against'],
    ['--peer portkey --only blog', '--only: blog does not go with --peer'],
    ['--against=', '--against: names no commit'],
    ['--against HEAD --rounds 0', '--rounds: 0 is not a whole number from 1 to 1000'],
    ['--against HEAD --rounds many', '--rounds: many is not a whole number from 1 to 1000'],
    [
      '--against HEAD --redis-url redis://example',
      '--redis-url: does not go with --against, which starts servers of its own',
    ],
    ['--against', "Option '--against <value>' argument missing"],
    ['--against --rounds 3', "Option '--against' argument is ambiguous"],
    ['--only streams --against HEAD', '--only: streams does not go with --against'],
    ['--only chat,streams --streams 0', '--streams: 0 is not a whole number from 1 to 10000'],
    ['--against HEAD twice', "Unexpected argument 'twice'"],
    ['--since HEAD', "Unknown option '--since'"],
  ])('refuses %s in one sentence', (line, sentence) => {
    expect(() => parse(line)).toThrow(new Error(sentence));
  });
});
