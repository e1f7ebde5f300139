import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { recordProvider } from '../../cli/commands/record.js';
import { type Simulator, startSimulator } from '../../dev/simulator/server.js';
import { providerIds } from '../../shared/contracts/contract.js';
import { makeFolder } from '../support/folders.js';
import { differences } from '../support/recorded-shapes.js';

/** The files that `quillgate record` has written of real providers, where an operator has had it do so. */
const recordings = 'test/recordings';

let simulator: Simulator;
const played = makeFolder(afterAll);
let printed = '';
beforeAll(async () => {
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    printed += text;
    return true;
  });
  simulator = await startSimulator({ port: 0 });
  await recordAll(played);
});
afterAll(async () => {
  vi.restoreAllMocks();
  await simulator?.close();
});

/** Every provider, and OpenAI by both of its APIs. */
async function recordAll(to: string): Promise<void> {
  const environment = { SIMULATOR_URL: simulator.url };
  for (const id of providerIds) await recordProvider(environment, id, { to });
  await recordProvider({ ...environment, OPENAI_WIRE: 'chat' }, 'openai', { to });
}

const read = (folder: string, file: string) => JSON.parse(readFileSync(join(folder, file), 'utf8'));

describe('a recording', () => {
  it('of the simulator -> twelve conversations for each API, for the eyes of their owner alone', () => {
    const apis = /^(openai-responses|openai-completions|anthropic|bedrock|vertexai)-/;
    const counts = Map.groupBy(readdirSync(played), (file) => apis.exec(file)?.[1]);
    expect([...counts.values()].map(({ length }) => length)).toEqual([12, 12, 12, 12, 12]);
    for (const file of readdirSync(played)) expect(statSync(join(played, file)).mode & 0o077).toBe(0);
    expect(printed).toMatch(/^tools-streamed: stop, 2 requests, the last of \d+ and \d+ tokens$/m);
    expect(printed.match(/^refused-\w+: \{"code":"provider_rejected",.*"status":400/gm)).toHaveLength(10);
  });

  it('of the simulator, beside another -> no difference', async () => {
    const again = makeFolder();
    await recordAll(again);
    for (const file of readdirSync(played))
      expect(differences(read(again, file), read(played, file)), file).toEqual({
        ...{ onlyRecorded: [], onlyPlayed: [] },
      });
  });

  it.each([
    ['openai-responses-tools-whole.json', 'arguments', 'answer.output[].'],
    ['anthropic-messages-text-streamed.json', 'stop_reason', '.delta.'],
    ['bedrock-converse-stream-text-streamed.json', 'stopReason', 'messageStop.'],
    ['vertexai-generateContent-refused-whole.json', 'code', 'answer.error.'],
  ])('%s with its field %s renamed -> the field is named', (file, field, place) => {
    const text = readFileSync(join(played, file), 'utf8');
    // Of the same length, because frames say theirs.
    const renamed = text
      .replaceAll(`${field}\\"`, `${field.slice(1)}_\\"`)
      .replaceAll(`"${field}":`, `"${field.slice(1)}_":`);
    const { onlyRecorded, onlyPlayed } = differences(JSON.parse(renamed), JSON.parse(text));
    expect(onlyPlayed).toContainEqual(expect.stringContaining(place + field));
    expect(onlyRecorded).toContainEqual(expect.stringContaining(`${place}${field.slice(1)}_`));
  });
});

const files = existsSync(recordings) ? readdirSync(recordings) : [];

describe('the recordings of real providers', () => {
  it.runIf(files.length === 0)('there are none -> nothing is compared', () => expect(files).toEqual([]));

  it.each(files)('%s -> the simulator answers alike', (file) => {
    expect(differences(read(recordings, file), read(played, file))).toEqual({
      ...{ onlyRecorded: [], onlyPlayed: [] },
    });
  });
});
