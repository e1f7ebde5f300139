import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { apiVariables, tracingVariables } from '../../shared/config/api-variables.js';
import { environmentSchema } from '../../shared/config/config.js';
import { workerVariables } from '../../shared/config/worker-variables.js';
import { providerIds } from '../../shared/contracts/contract.js';

const { services } = parse(readFileSync('docker-compose.yml', 'utf8'), { merge: true }) as {
  services: Record<string, { environment?: Record<string, unknown> }>;
};
const passedTo = (service: string) => Object.keys(services[service]?.environment ?? {});

/** Where the programs listen in their containers is not for the operator to say, and DATA_DIR is that of npm start. */
const fixed = ['PORT', 'HOST', 'WORKER_PORT', 'SIMULATOR_PORT', 'DATA_DIR'];
const forBoth = [...Object.keys(tracingVariables), 'LOG_LEVEL', 'SHUTDOWN_GRACE_MS', 'STREAM_GRACE_MS'];
const owners = {
  openai: /^OPENAI_/,
  anthropic: /^ANTHROPIC_/,
  bedrock: /^(BEDROCK|AWS)_/,
  vertexai: /^(VERTEXAI|GOOGLE)_/,
};

describe('docker-compose.yml', () => {
  it('-> passes every variable of the table to some program', () => {
    const passed = new Set(Object.keys(services).flatMap(passedTo));
    expect(Object.keys(environmentSchema.shape).filter((name) => !passed.has(name))).toEqual(fixed);
  });

  it("-> passes to the API all that is the API's", () => {
    expect(passedTo('api')).toEqual(expect.arrayContaining([...Object.keys(apiVariables), ...forBoth]));
  });

  it.each(providerIds)(
    'to the worker of %s -> passes what is for every worker, and for its provider alone',
    (id) => {
      const isOthers = (name: string) =>
        providerIds.some((other) => other !== id && owners[other].test(name));
      const passed = passedTo(`worker-${id}`);
      const wanted = Object.keys(workerVariables).filter((name) => !isOthers(name));
      expect(passed).toEqual(expect.arrayContaining([...wanted, ...forBoth]));
      expect(passed.filter(isOthers)).toEqual([]);
    },
  );
});
