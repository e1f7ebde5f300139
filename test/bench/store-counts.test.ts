import { describe, expect, it } from 'vitest';
import { countsBetween, countsBeyond, countsPer, parseRedisCounts } from './store-counts.js';

const info = [
  '# Stats',
  'total_commands_processed:1000',
  'total_net_input_bytes:5000',
  'total_net_output_bytes:7000',
  '# Commandstats',
  'cmdstat_info:calls=3,usec=100,usec_per_call=33.33,rejected_calls=0,failed_calls=0',
  'cmdstat_evalsha:calls=20,usec=1,usec_per_call=0.05,rejected_calls=0,failed_calls=0',
  'cmdstat_eval:calls=2,usec=1,usec_per_call=0.5,rejected_calls=0,failed_calls=0',
  'cmdstat_fcall_ro:calls=1,usec=1,usec_per_call=1.00,rejected_calls=0,failed_calls=0',
  'cmdstat_client|setinfo:calls=4,usec=1,usec_per_call=0.25,rejected_calls=0,failed_calls=0',
  'cmdstat_hset:calls=100,usec=90,usec_per_call=0.90,rejected_calls=0,failed_calls=0',
  '',
].join('\r\n');

describe('parseRedisCounts', () => {
  it('adds up all commands but its own, tells scripts apart, and reads the bytes', () => {
    expect(parseRedisCounts(info)).toEqual({ commands: 127, scripts: 23, bytesIn: 5000, bytesOut: 7000 });
  });
});

describe('counts of a run', () => {
  it('are what came between, without what comes anyway, for each answer', () => {
    const before = { commands: 10, scripts: 1, bytesIn: 100, bytesOut: 1000 };
    const after = { commands: 50, scripts: 7, bytesIn: 500, bytesOut: 3000 };
    const idle = { commands: 5, scripts: 0.5, bytesIn: 50, bytesOut: 0 };
    const beyond = countsBeyond(countsBetween(before, after), idle, 4);
    expect(countsPer(beyond, 2)).toEqual({ commands: 10, scripts: 2, bytesIn: 100, bytesOut: 1000 });
  });
});
