import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { parseConfig } from '../../shared/config/config.js';
import { providerIds } from '../../shared/contracts/contract.js';
import { readMetrics } from '../support/metrics.js';
import { patience } from '../support/patience.js';
import { type ComposeProject, openComposeProject } from './support/compose-project.js';
import { docker } from './support/docker.js';

const [makeCredentials, up, chat, post, addUser, createToken, importPosts, scale, ...ends] = commandsOf(
  'With Docker',
) as [string, string, string, string, string, string, string, string, ...string[]];
const credentials = ['POSTGRES_PASSWORD', 'REDIS_PASSWORD', 'CHAT_PASSWORD', 'BLOG_TOKEN'];
const programs = ['api', ...providerIds.map((id) => `worker-${id}`)];

let project: ComposeProject;

/** A field of every container of a service. */
const inspect = async (service: string, format: string) =>
  (await docker('inspect', '--format', format, ...(await project.containers(service)))).split('\n');

const chatWith = (id: string, ...headers: string[]) =>
  project.run(
    chat.replace("'X-LLM: openai'", [`X-LLM: ${id}`, ...headers].map((header) => `'${header}'`).join(' -H ')),
  );

/** The output of a script in a container of the service. */
const inService = (service: string, script: string) =>
  project.compose('exec', '-T', service, 'node', '--input-type=module', '-e', script);

const simulator = 'http://127.0.0.1:3002/__simulator';

/** Waits until a call of each model has come to the simulator. */
const calls = (models: readonly string[]) =>
  inService(
    'simulator',
    `for (const model of ${JSON.stringify(models)})
       while (!(await fetch('${simulator}/calls?wait=call&model=' + encodeURIComponent(model))).ok);`,
  );

const openGates = (models: readonly string[]) =>
  inService(
    'simulator',
    `for (const model of ${JSON.stringify(models)})
       await fetch('${simulator}/gates/' + encodeURIComponent(model), { method: 'POST' });`,
  );

/** The sum of a metric, of a worker's container or of the API. */
async function total(
  container: string,
  metric: string,
  url = 'http://127.0.0.1:3001/metrics',
): Promise<number> {
  const script = `fetch('${url}').then((answer) => answer.text()).then(console.log)`;
  const scraped = readMetrics(await docker('exec', container, 'node', '-e', script));
  return [...scraped]
    .filter(([name]) => name.split('{')[0] === metric)
    .reduce((sum, [, value]) => sum + value, 0);
}

/** Runs a line until it prints this: an API learns of users and tokens a moment after they are made. */
const says = (line: string, text: string) =>
  vi.waitFor(async () => expect(await project.run(line)).toContain(text), { ...patience, interval: 250 });

/** Each test goes on where the one before it has stopped: containers are started once. */
describe('docker compose, by the commands of the README', { timeout: 600_000 }, () => {
  beforeAll(async () => {
    // Longer than a slow machine holds a call, so that none ends before its gate opens.
    project = await openComposeProject(inject('image'), { OPENAI_TIMEOUT_MS: '600000' });
  }, 600_000);

  afterAll(() => project.remove());

  it.each(credentials)('without %s -> refuses to start, and says where to get it', async (name) => {
    const others = credentials.filter((other) => other !== name).map((other) => `${other}=x\n`);
    writeFileSync(join(project.dir, 'others'), others.join(''));
    const { code, stderr } = await project.tryCompose('--env-file', 'others', 'up', '--wait');
    expect(code).not.toBe(0);
    expect(stderr).toContain(`required variable ${name} is missing`);
    expect(stderr).toContain('run deploy/make-credentials');
  });

  it("the script that makes credentials -> makes them once, for their owner's eyes", async () => {
    await project.run(makeCredentials);
    const file = join(project.dir, '.env');
    const made = readFileSync(file, 'utf8');
    expect(made.match(/^[A-Z_]+=[0-9a-f]{48}$/gm)).toHaveLength(credentials.length + 1);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    // npm start and the runners of a Procfile read the same file, and half a user is none.
    const elsewhere = { ...parseEnv(made), DATABASE_URL: 'postgres://127.0.0.1/none' };
    expect(parseConfig(elsewhere, 'api')).toMatchObject({
      CHAT_USERNAME: 'demo',
      ADMIN_USERNAME: 'admin',
    });
    await project.run(makeCredentials);
    expect(readFileSync(file, 'utf8')).toBe(made);
  });

  it('the line that starts it -> answers the first request', async () => {
    await project.run(up);
    expect(JSON.parse(await project.run(chat))).toEqual({ response: expect.stringContaining('Hello!') });
  });

  it('no provider has a key -> every one is simulated', async () => {
    const replies = await Promise.all(providerIds.map((id) => chatWith(id)));
    expect(replies).toEqual(providerIds.map((id) => expect.stringContaining(`Simulated ${id} reply`)));
  });

  it('once started -> publishes the API alone, for this machine alone, and no program has more rights than it needs', async () => {
    const images = (await project.compose('config', '--images')).split('\n');
    for (const image of images) expect(image).toMatch(/:(?!latest)[\w.-]+$/);
    for (const service of programs) {
      const [facts] = await inspect(service, '{{.HostConfig.ReadonlyRootfs}} {{.HostConfig.CapDrop}}');
      expect(facts).toBe('true [ALL]');
    }
    const ports = await docker(
      'ps',
      '--filter',
      `label=com.docker.compose.project=${project.name}`,
      '--format',
      '{{.Ports}}',
    );
    expect(ports.match(/\S+->\S+/g)).toEqual([expect.stringMatching(/^127\.0\.0\.1:\d+->3000\/tcp$/)]);
    const variables = await inspect('worker-openai', '{{.Config.Env}}');
    expect(variables.join()).not.toMatch(/DATABASE_URL|PASSWORD=|BLOG_TOKEN/);
  });

  it('once started -> the stores are on a network that leads nowhere, and metrics are off the published port', async () => {
    const networks = (service: string) =>
      inspect(service, '{{range $name, $_ := .NetworkSettings.Networks}}{{$name}} {{end}}').then(
        ([names = '']) => names.trim().replaceAll(`${project.name}_`, '').split(' '),
      );
    for (const service of programs) expect(await networks(service), service).toEqual(['front', 'store']);
    for (const service of ['postgres', 'redis']) expect(await networks(service), service).toEqual(['store']);
    expect(await networks('simulator')).toEqual(['front']);
    expect(await docker('network', 'inspect', '--format', '{{.Internal}}', `${project.name}_store`)).toBe(
      'true',
    );
    const status = await project.run("curl -s -o /dev/null -w '%{http_code}' http://localhost:3000/metrics");
    expect(status).toBe('404');
    const metrics = await inService(
      'worker-openai',
      "console.log(await (await fetch('http://api:3003/metrics')).text())",
    );
    expect(metrics).toMatch(/^# TYPE quillgate_/m);
  });

  it('the stores are removed and made again -> posts and the queue are still there, on a Redis that throws nothing out', async () => {
    const { id } = JSON.parse(await project.run(post));
    const redis = (...args: string[]) => project.compose('exec', '-T', 'redis', 'redis-cli', ...args);
    expect(await redis('config', 'get', 'maxmemory-policy')).toMatch(/noeviction$/);
    expect(await redis('config', 'get', 'appendonly')).toMatch(/yes$/);
    await redis('set', 'kept', 'yes');
    await project.compose('rm', '--stop', '--force', '--volumes', 'postgres', 'redis');
    await project.compose('up', '--wait', 'postgres', 'redis');
    expect(await redis('get', 'kept')).toBe('yes');
    await says('curl -s http://localhost:3000/blogs', id);
    // The next command would not wait for a program that is not ready yet.
    const health = () => Promise.all(programs.map((service) => inspect(service, '{{.State.Health.Status}}')));
    await vi.waitFor(async () => expect(new Set((await health()).flat())).toEqual(new Set(['healthy'])), {
      ...patience,
      interval: 250,
    });
  });

  it('the lines for a user, a token and a folder of posts -> each can be used', async () => {
    const secret = await project.run(addUser);
    const reply = chat.replace(/-u "[^"]*"/, `-u "ada:${secret}"`);
    await says(reply, 'Hello!');
    const token = await project.run(createToken);
    await says(post.replace(/Bearer [^"]*"/, `Bearer ${token}"`), '"title":"Hello"');
    mkdirSync(join(project.dir, 'posts'));
    writeFileSync(join(project.dir, 'posts', 'imported.md'), '---\ntitle: Imported\n---\nFrom a folder.\n');
    await project.run(importPosts);
    expect(await project.run('curl -s http://localhost:3000/blogs')).toContain('From a folder.');
  });

  it('the line that scales a provider -> three workers of it, one of each other', async () => {
    await project.run(scale);
    expect(await inspect('worker-openai', '{{.State.Health.Status}}')).toEqual(Array(3).fill('healthy'));
    expect(await inspect('worker-anthropic', '{{.State.Health.Status}}')).toEqual(['healthy']);
  });

  it('W1 a worker is killed under 20 requests, and the line that scales brings it back -> each has its own answer', async () => {
    // The reply to each has another length.
    const models = Array.from({ length: 20 }, (_, n) => `sim-gate-${n + 1}@books`);
    const answers = models.map((model) => chatWith('openai', `X-LLM-Model: ${model}`, 'Prefer: wait=300'));
    await calls(models);
    const workers = await project.containers('worker-openai');
    const inFlight = await Promise.all(workers.map((id) => total(id, 'quillgate_pool_in_flight')));
    expect(inFlight.reduce((sum, jobs) => sum + jobs)).toBe(models.length);
    await docker('kill', workers[inFlight.indexOf(Math.max(...inFlight))] ?? '');
    await project.run(scale);
    await openGates(models);
    const replies = (await Promise.all(answers)).map((answer) => JSON.parse(answer).response as string);
    expect(replies.map((reply) => reply.match(/\d+/g)?.length)).toEqual(models.map((_, n) => 2 * (n + 1)));
    const listed = await inService(
      'simulator',
      `console.log(await (await fetch('${simulator}/calls')).text())`,
    );
    const made = (JSON.parse(listed) as { model: string; closedAt?: string }[]).filter(({ model }) =>
      models.includes(model),
    );
    const perRequest = models.map((model) => made.filter((call) => call.model === model).length);
    expect(Math.max(...perRequest)).toBe(2);
    expect(perRequest.filter((count) => count === 2)).toHaveLength(Math.max(...inFlight));
    expect(made.filter(({ closedAt }) => closedAt === undefined)).toEqual([]);
    const [api = ''] = await project.containers('api');
    const left = () => total(api, 'quillgate_queue_jobs', 'http://127.0.0.1:3003/metrics');
    await vi.waitFor(async () => expect(await left()).toBe(0), { ...patience, interval: 250 });
  });

  it('one provider is real -> the others are unavailable, and no text is invented', async () => {
    writeFileSync(join(project.dir, 'key'), 'OPENAI_API_KEY=not-a-key\n');
    await project.compose('--env-file', '.env', '--env-file', 'key', 'up', '--wait');
    const refused = await chatWith('anthropic');
    expect(JSON.parse(refused)).toMatchObject({ code: 'provider_unavailable' });
    await project.compose('up', '--wait');
    expect(await chatWith('anthropic')).toContain('Simulated anthropic reply');
  });

  it('told to stop with a call in flight -> the call is finished, and every program ends with 0', async () => {
    const model = 'sim-gate-1@stop';
    const reply = chatWith('openai', `X-LLM-Model: ${model}`);
    await calls([model]);
    const stopped = project.compose('stop', ...programs);
    const logs = () => project.compose('logs', 'api', 'worker-openai');
    await vi.waitFor(async () => expect((await logs()).match(/"stopping"/g)).toHaveLength(2), patience);
    await openGates([model]);
    expect(JSON.parse(await reply)).toEqual({ response: expect.any(String) });
    await stopped;
    for (const service of programs)
      for (const code of await inspect(service, '{{.State.ExitCode}}'))
        expect(`${service} ${code}`).toBe(`${service} 0`);
  });

  it('the last line -> nothing is left', async () => {
    for (const end of ends) await project.run(end);
    const label = `label=com.docker.compose.project=${project.name}`;
    const left = await Promise.all([
      docker('ps', '--all', '--quiet', '--filter', label),
      docker('volume', 'ls', '--quiet', '--filter', label),
      docker('network', 'ls', '--quiet', '--filter', label),
    ]);
    expect(left).toEqual(['', '', '']);
  });
});

/** The commands of a section of the README, as printed; lines that end with a backslash are one command. */
function commandsOf(section: string): string[] {
  const readme = readFileSync('README.md', 'utf8');
  const text = readme.split(`\n## ${section}\n`)[1]?.split('\n## ')[0];
  if (text === undefined) throw new Error(`The README has no section ${section}.`);
  return text
    .split('\n')
    .filter((line) => line.startsWith('    '))
    .map((line) => line.slice(4))
    .join('\n')
    .replaceAll('\\\n', ' ')
    .split('\n');
}
