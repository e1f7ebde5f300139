import { isBlank } from '../../../shared/conversation.js';
import { type DescribedOperation, undescribedHeaders } from '../../support/openapi-document.js';
import { type Verdict, verdictOnBody } from './body-verdict.js';
import type { Answer } from './client.js';
import type { SentRequest } from './request.js';
import { canaryMark, nameMark } from './texts.js';

/** Throws an `Error` that says how the answer breaks what the document promises. */
export function judge(operation: DescribedOperation, sent: SentRequest, answer: Answer): void {
  const { status } = answer;
  must(
    status < 500 || hasUnknownCoding(sent, status) || isFailedReply(operation, sent),
    `the status is ${status}`,
  );
  if (status >= 400) judgeProblem(sent, answer);
  // Other operations of this address are not described; bytes that are no HTTP have no operation.
  if (sent.odd === 'address' || isNoRequest(sent, status)) return;
  judgeHeaders(operation, answer);
  judgeBody(operation, sent, answer);
  if (sent.odd) judgeOddity(operation, sent, status);
  else judgeVerdicts(operation, sent, status);
}

/** Throws unless the condition holds. */
function must(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new Error(otherwise);
}

function judgeProblem(sent: SentRequest, answer: Answer): void {
  const { status, headers, body } = answer;
  must(!body.includes(canaryMark), 'the error repeats a value of the request');
  if (isPage(sent, answer) || sent.method === 'HEAD') return;
  // Below `/v1`, and where a wrong base address leads to, it is OpenAI's, with the place in `param`.
  const {
    errors = [],
    error,
    ...rest
  } = JSON.parse(body) as Record<string, unknown> & {
    errors?: { detail: string }[];
    error?: object;
  };
  if (error === undefined) {
    const type = headers['content-type'] ?? '';
    must(/^application\/problem\+json(;|$)/.test(type), `the ${status} is not problem+json`);
    must(rest.status === status, 'the status of the problem is another one');
    must(rest.requestId === headers['x-request-id'], 'the request id of the problem is another one');
  }
  const words = JSON.stringify([rest, errors.map(({ detail }) => detail), { ...error, param: null }]);
  must(!words.includes(nameMark), 'the error repeats a name of the request beside its place');
}

/**
 * Who asks for pages gets them, also of what went wrong in the blog and of addresses that nothing serves; the document
 * has the API alone. Below `/v1` there are none.
 */
const isPage = (
  { method, target, own }: SentRequest,
  { status, headers }: Pick<Answer, 'status' | 'headers'>,
): boolean =>
  /^text\/html(;|$)/.test(headers['content-type'] ?? '') &&
  ['GET', 'HEAD'].includes(method) &&
  (/^(https?:\/\/[^/?]*)?\/blogs([/?#]|$)/.test(target) ||
    (status === 404 && !/^(https?:\/\/[^/?]*)?\/v1([/?#]|$)/.test(target))) &&
  own.some(([name, value]) => name === 'Accept' && value.includes('text/html'));

/** The stream of a stored chat without a reply ends as the chat did. */
const isFailedReply = ({ path, method }: DescribedOperation, { own }: SentRequest): boolean =>
  path === '/chat/{id}' &&
  method === 'GET' &&
  own.some(([name, value]) => name === 'Accept' && value.includes('text/event-stream'));

/** A transfer coding that is not undone, and that no operation comes to see. */
const hasUnknownCoding = ({ others }: SentRequest, status: number): boolean =>
  status === 501 && others.some(([name]) => name === 'Transfer-Encoding');

/** Unknown methods, bytes that no address has, and headers beyond Node's limit: no operation sees them. */
function isNoRequest(sent: SentRequest, status: number): boolean {
  if (hasUnknownCoding(sent, status)) return true;
  const { method, target, credentials, own } = sent;
  const size = [...credentials, ...own].flat().join('').length;
  const isNoHttp = ['post', 'GETT', 'X'].includes(method) || /[^\x21-\x7e]/.test(target);
  return (status === 400 && isNoHttp) || (status === 431 && size + target.length > 15_000);
}

function judgeHeaders({ path, responses }: DescribedOperation, { status, headers }: Answer): void {
  const described = responses[status];
  must(described !== undefined, `the document has no ${status}`);
  for (const [name, { required }] of Object.entries(described.headers ?? {})) {
    must(!required || headers[name.toLowerCase()] !== undefined, `the ${status} has no header ${name}`);
  }
  const undescribed = /^\/(chat|v1|admin)/.test(path)
    ? undescribedHeaders(responses, { status, headers })
    : [];
  must(undescribed.length === 0, `the document has no header ${undescribed} for ${status}`);
}

function judgeBody(
  { responses, faultOf }: DescribedOperation,
  sent: SentRequest,
  { status, headers, body }: Answer,
): void {
  const { method } = sent;
  if (isPage(sent, { status, headers })) return;
  const content = responses[status]?.content;
  const [mediaType = ''] = (headers['content-type'] ?? '').split(';');
  if (content) must(mediaType in content, `the document has no ${mediaType} for ${status}`);
  if (content && method !== 'HEAD') {
    const fault = faultOf(status, mediaType, mediaType.endsWith('json') ? JSON.parse(body) : body);
    must(fault === undefined, `the body of ${status} ${mediaType} is not as documented: ${fault}`);
  } else must(body === '', `the ${status} to ${method} has a body`);
}

function judgeOddity({ method, path }: DescribedOperation, sent: SentRequest, status: number): void {
  const isOpenAi = path.startsWith('/v1/');
  const isScoped = /^\/(v1|admin|usage)/.test(path);
  const hasScopes = isScoped || (method !== 'GET' && !path.startsWith('/chat'));
  // It may be a post's: their titles are random as well.
  const isSlug =
    path === '/blogs/{id}' &&
    method === 'GET' &&
    /\/(?:[a-z0-9]|%[89A-F][0-9A-F])+(-(?:[a-z0-9]|%[89A-F][0-9A-F])+)*$/.test(sent.target);
  const expected = {
    address: undefined,
    method: [405],
    id: sent.body ? [400, 404, 413] : [404, ...(isSlug ? [200, 304, 308] : [])],
    credentials: hasScopes ? [401, 403] : [401],
    'media type': [415],
    headers: isOpenAi ? [400, 404, 413] : [400, 413],
  }[sent.odd ?? 'address'];
  must(!expected || expected.includes(status), `odd ${sent.odd} is answered with ${status}`);
}

const keeps = new Set(['POST', 'PUT', 'PATCH']);

function judgeVerdicts(operation: DescribedOperation, sent: SentRequest, status: number): void {
  if (keeps.has(sent.method) && operation.takesBody) judgeVerdict(verdictOnBody(operation, sent), status);
  if (operation.method === 'GET') judgeVerdict(verdictOnQuery(operation, sent.target), status);
}

function judgeVerdict(verdict: Verdict, status: number): void {
  const isRight = {
    taken: status !== 400,
    refused: status === 400,
    'too large': status === 413,
    either: true,
  }[verdict];
  must(isRight, `what the document says is ${verdict} is answered with ${status}`);
}

/** The verdict on a request's query; undecodable parts have the value undefined. */
function verdictOnQuery(operation: DescribedOperation, target: string): Verdict {
  const at = target.indexOf('?');
  const pairs =
    at < 0
      ? []
      : target
          .slice(at + 1)
          .split('&')
          .map(readPair);
  const known = pairs.filter(([name]) => operation.acceptsParameter(name, '') !== undefined);
  const isTwice = new Set(known.map(([name]) => name)).size < known.length;
  if (isTwice || known.some((pair) => !isAccepted(operation, pair))) return 'refused';
  const isUnsayable = known.some(
    ([name, value = '']) => ['cursor', 'from', 'to'].includes(name) || isBlank(value) || value.includes('\0'),
  );
  return isUnsayable ? 'either' : 'taken';
}

type Pair = [name: string, value: string | undefined];

function readPair(pair: string): Pair {
  const at = pair.indexOf('=');
  return at < 0 ? [decode(pair) ?? '', ''] : [decode(pair.slice(0, at)) ?? '', decode(pair.slice(at + 1))];
}

function decode(encoded: string): string | undefined {
  try {
    return decodeURIComponent(encoded.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}

const isAccepted = (operation: DescribedOperation, [name, value]: Pair): boolean =>
  value !== undefined && operation.acceptsParameter(name, typed(name, value)) === true;

const booleans = new Map([
  ['true', true],
  ['false', false],
]);

function typed(name: string, value: string): unknown {
  if (name === 'limit') return /^-?\d+$/.test(value) ? Number(value) : value;
  return name === 'envelope' ? (booleans.get(value) ?? value) : value;
}
