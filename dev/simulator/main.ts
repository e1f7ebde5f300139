import { parseArgs } from 'node:util';
import { type Simulator, startSimulator } from './server.js';

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '3002' },
    host: { type: 'string', default: '127.0.0.1' },
  },
});

startSimulator({ port: Number(values.port), host: values.host }).then(run, (error: Error) => {
  process.stderr.write(`The simulator cannot listen on ${values.host}:${values.port}: ${error.message}\n`);
  process.exitCode = 1;
});

function run(simulator: Simulator): void {
  process.stdout.on('error', () => undefined).write(howToUse(simulator.url));
  process.send?.({ type: 'listening', url: simulator.url, port: simulator.port });
  process.send?.({ type: 'ready' });
  const end = async () => {
    await simulator.close();
    // The channel to a parent process would keep this one alive.
    if (process.connected) process.disconnect();
  };
  process.once('SIGINT', end);
  process.once('SIGTERM', end);
  process.once('disconnect', end);
}

function howToUse(url: string): string {
  return `Provider simulator (no model is called) listening on ${url}; GET ${url}/ lists the model names it knows.
  openai     OPENAI_BASE_URL=${url}/v1  OPENAI_API_KEY=simulated
  anthropic  ANTHROPIC_BASE_URL=${url}  ANTHROPIC_API_KEY=simulated
  bedrock    AWS_ENDPOINT_URL_BEDROCK_RUNTIME=${url}  (HTTP/1.1 request handler; any region and credentials)
  vertexai   GOOGLE_VERTEX_BASE_URL=${url}/  GOOGLE_API_KEY=simulated
`;
}
