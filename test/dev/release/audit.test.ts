import { type ExecFileOptions, execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { makeFolder, plant } from '../../support/folders.js';
import { serve } from '../../support/serve.js';

const advisory = {
  id: 1,
  url: 'https://example.com/1',
  title: 'Answers with the private key',
  severity: 'high',
  vulnerable_versions: '<99',
  cwe: [],
  cvss: { score: 8, vectorString: null },
};

/** npm takes its time to load on a busy machine. */
describe('the audit', () => {
  it('passes when the registry knows of nothing', async () => {
    expect(await auditAgainst(200, {})).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('0 packages'),
    });
  });

  it('passes, and says so, when what is known is moderate', async () => {
    const moderate = { express: [{ ...advisory, severity: 'moderate' }] };
    const { code, stdout } = await auditAgainst(200, moderate);
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^moderate: express.*Answers/m),
    });
  });

  it('fails for what is high', async () => {
    const { code, stdout } = await auditAgainst(200, { express: [advisory] });
    expect({ code, stdout }).toEqual({ code: 1, stdout: expect.stringMatching(/^high: express.*Answers/m) });
  });

  it('tells no answer from a good one', async () => {
    expect(await auditAgainst(503, {})).toEqual({
      code: 3,
      stdout: '',
      stderr: expect.stringMatching(/^NOT AUDITED: the registry/),
    });
  });

  it('fails when npm cannot even ask', async () => {
    const folder = plant({ 'package.json': '{}' });
    const { code, stderr } = await run(process.execPath, [resolve('dev/release/audit.mjs')], { cwd: folder });
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(/^NOT AUDITED: .*lockfile/) });
  });
});

/** Runs it against a registry that answers every audit so, and knows of no package. */
async function auditAgainst(status: number, advisories: object) {
  const registry = await serve((request, response) => {
    const audited = request.url?.startsWith('/-/npm/v1/security/');
    response.writeHead(audited ? status : 404, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify(advisories));
  });
  onTestFinished(registry.close);
  // npm remembers advisories, and shall not remember these.
  const env = { PATH: process.env.PATH, npm_config_registry: registry.url, npm_config_cache: makeFolder() };
  return run(process.execPath, ['dev/release/audit.mjs'], { env });
}

const run = (command: string, args: string[], options: ExecFileOptions) =>
  new Promise<{ code: number; stdout: string; stderr: string }>((done) => {
    execFile(command, args, { ...options, encoding: 'utf8' }, (error, stdout, stderr) =>
      done({ code: Number(error?.code ?? 0), stdout, stderr }),
    );
  });
