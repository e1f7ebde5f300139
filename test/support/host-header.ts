import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';

/** The status of the answer to a request that names this host, in place of that of its address. */
export async function statusFor(url: string, host: string): Promise<number | undefined> {
  const [response] = (await once(get(url, { headers: { host }, agent: false }), 'response')) as [
    IncomingMessage,
  ];
  response.resume();
  await once(response, 'close');
  return response.statusCode;
}
