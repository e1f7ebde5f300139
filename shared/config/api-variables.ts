import { z } from 'zod';
import { userName } from '../credential-forms.js';
import {
  aliases,
  byteCount,
  choice,
  count,
  httpUrl,
  imageHosts,
  list,
  longSecret,
  milliseconds,
  secret,
  targets,
  text,
  whole,
} from './variable-types.js';

/** A well-formed tag (BCP 47) that this platform can write dates in. */
function isLanguage(tag: string): boolean {
  try {
    return Intl.DateTimeFormat.supportedLocalesOf(tag).length === 1;
  } catch {
    return false;
  }
}

const isVisible = (token: string): boolean => /^[\x21-\x7e]*$/.test(token);

const proxyAddress = z.union(
  [z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6(), z.enum(['loopback', 'linklocal', 'uniquelocal'])],
  { error: 'must be a comma list of addresses, networks, or loopback, linklocal, uniquelocal' },
);

const origin = z.union(
  [
    z.literal('*'),
    httpUrl.refine((value) => URL.canParse(value) && new URL(value).origin === value && !value.includes('*')),
  ],
  { error: 'must be a comma list of origins such as https://app.example.org, without a path, or *' },
);

const fallback = targets
  .optional()
  .describe(
    'Comma list of up to four providers or provider/model that are asked one after another when this one fails, for requests without X-LLM-Fallback; none unless set, because conversations then reach another company.',
  );

/** The API: its services, its users and its limits. */
export const apiVariables = {
  CHAT_USERNAME: userName.optional().describe('Name of the first chat user.'),
  CHAT_PASSWORD: secret(
    longSecret(16),
    'Password of the first chat user; at least 16 characters, 8 of them different.',
  ),
  ADMIN_USERNAME: userName
    .optional()
    .describe('Name of the first user of the console; not the same as CHAT_USERNAME.'),
  ADMIN_PASSWORD: secret(
    longSecret(16),
    'Password of the first user of the console; at least 16 characters, 8 of them different. A new one ends the sessions of this user.',
  ),
  BLOG_TITLE: text
    .max(300, 'must have at most 300 characters')
    .default('Blog')
    .describe('Title of the blog, its pages and its feeds.'),
  BLOG_LANGUAGE: z
    .string()
    .refine(isLanguage, 'must be a language tag such as en, de or pt-BR')
    .default('en')
    .describe('Language of the posts, as a tag such as de or pt-BR: on pages, in dates and in feeds.'),
  BLOG_READS: choice(['public', 'token'])
    .default('public')
    .describe('Who may read posts and feeds: everyone (public), or tokens that may read or write (token).'),
  BLOG_IMAGES: imageHosts
    .default(['https'])
    .describe(
      'Where the images on the pages of posts may come from: https (anywhere), none, or a comma list of hosts (images.example.org, *.example.org). Each host sees who reads the post. Images of this server are always allowed.',
    ),
  BLOG_READS_PER_SECOND: whole(0, 1_000_000)
    .default(20)
    .describe(
      'Maximum reads of posts and feeds per second without credentials from one address, averaged over ten seconds, per API process; 0 for no limit, where a proxy in front limits them.',
    ),
  BLOG_TOKEN: secret(
    longSecret(32).refine(isVisible, 'must be visible ASCII without spaces'),
    'First access token of the blog, with scopes blogs:write and blogs:read; at least 32 characters, 8 of them different.',
  ),
  CHAT_TOKEN: secret(
    longSecret(32).refine(isVisible, 'must be visible ASCII without spaces'),
    'First access token for chat with OpenAI-compatible clients, with scope chat; at least 32 characters, 8 of them different.',
  ),
  AUDIT_DAYS: count(36_500)
    .default(400)
    .describe('How long the audit of what operators have done is kept, in days.'),
  LEDGER_DAYS: count(36_500)
    .default(400)
    .describe('How long the requests and calls of the ledger are kept, in days; the sums of each day stay.'),
  PRICES_FILE: text
    .optional()
    .describe(
      'Path of a JSON file with prices of models, in dollars for a million tokens: a list of objects with provider, id, and input, cached, written, writtenFor1h, output, from, tier or above; they replace all prices that this release has for their id.',
    ),
  CORS_ORIGINS: list
    .pipe(z.array(origin).min(1))
    .optional()
    .describe(
      'Comma list of the origins (https://app.example.org, or * for any) whose pages may use the chat, and write to the blog, from a browser; none unless set. Such a page needs credentials, and its users can read them.',
    ),
  TRUSTED_PROXIES: list
    .pipe(z.array(proxyAddress).min(1))
    .optional()
    .describe(
      'Comma list of the addresses or networks (10.0.0.0/8, loopback) of proxies, whose X-Forwarded-For is trusted.',
    ),
  CHAT_TIMEOUT_MS: milliseconds(1000)
    .default(55_000)
    .describe('Deadline of a chat request that does not name its own, in milliseconds.'),
  CHAT_COMPATIBLE_TIMEOUT_MS: milliseconds(1000)
    .default(600_000)
    .describe(
      'The same for requests by the APIs of others, at /v1, in milliseconds: their clients wait for ten minutes, and models may think for as long.',
    ),
  CHAT_MAX_WAIT_S: count(3600)
    .default(3600)
    .describe(
      'Longest deadline a caller may ask for with Prefer: wait=N, or a client by its own timeout, in seconds; must be the same for all API processes, each of which forgets jobs that are a minute older.',
    ),
  CHAT_STREAM_MAX_S: count(3600)
    .default(3600)
    .describe(
      'How long a stream may go on after the deadline for its first delta, in seconds; a request with Prefer: wait=N ends with that.',
    ),
  OPENAI_FALLBACK: fallback,
  ANTHROPIC_FALLBACK: fallback,
  BEDROCK_FALLBACK: fallback,
  VERTEXAI_FALLBACK: fallback,
  MODEL_ALIASES: aliases
    .optional()
    .describe(
      'Comma list of name=provider/model: names of models at /v1 for programs that have a list of their own, such as gpt-6-luna=anthropic/claude-opus-5-5. A name may end with * for all that begin so; of several that fit the first counts. A model has to be one that callers may name.',
    ),
  CHAT_USER_MAX_IN_FLIGHT: count(100_000)
    .optional()
    .describe(
      'Maximum concurrent chat requests of one user, asynchronous chats included, per API process; when it is not set, ten times what all pools can run at once, and at least 100.',
    ),
  CHAT_USER_MAX_QUEUED_BYTES: byteCount
    .default(134_217_728)
    .describe(
      'Maximum bytes that the requests of one user may hold, from the first byte of a body to the end of the request or of its stored chat, per API process: of the body, or of the job on the queue if that is longer; a single one may be larger.',
    ),
  CHAT_MAX_QUEUED_BYTES: byteCount
    .default(536_870_912)
    .describe(
      'Maximum bytes that the requests of all users may hold, counted in the same way, per API process.',
    ),
  CHAT_USER_MAX_PER_MINUTE: count(1_000_000)
    .optional()
    .describe(
      'Maximum chat requests of one user per minute, per API process, streams of stored chats counted, other reading and cancelling not; no limit when it is not set.',
    ),
  CHAT_RESULT_TTL_S: count(86_400)
    .default(3600)
    .describe(
      'How long after its deadline a stored chat can be read and its idempotency key is remembered, in seconds.',
    ),
  MAX_BODY_BYTES: whole(1024, 67_108_864)
    .default(1_048_576)
    .describe('Largest request body, in bytes, but for those at /v1.'),
  MAX_COMPATIBLE_BODY_BYTES: whole(1024, 134_217_728)
    .default(33_554_432)
    .describe(
      'Largest body of a request by the APIs of others, at /v1, in bytes, with its images: agents send long histories.',
    ),
  MAX_IMAGE_BYTES: whole(1024, 67_108_864)
    .default(20_971_520)
    .describe(
      'Most bytes of all images in a chat completion together, decoded; the larger they are, the longer one request keeps an API process busy.',
    ),
  MAX_MESSAGES: count(100_000).default(1000).describe('Maximum messages in one conversation.'),
};

/** OpenTelemetry's exporter would take its default address for one with a blank. */
const endpoint = z
  .string()
  .regex(
    /^[^\s@?#]*$/,
    'must have no blanks, credentials, query or fragment; credentials belong in OTEL_EXPORTER_OTLP_HEADERS',
  )
  .pipe(httpUrl);

const notShare = { error: 'must be a number from 0 to 1' };
const share = z.coerce.number(notShare).min(0, notShare).max(1, notShare);

const pairsError = 'must be a comma list of key=value, percent-encoded';
/** OpenTelemetry's detector would drop the whole list for one that is longer. */
const pairs = /^(\s*([^\s=,%]|%[\da-f]{2}){1,255}\s*=([^=,%]|%[\da-f]{2}){0,255}(,|$))+$/i;
/** Pairs that a request can carry as headers (RFC 9110, 5.5). */
const headers = /^(\s*[\w!#$\&'*+.^`\|~\-]+\s*=([[\t\x20-\x7e]--[,;%]]|%[2-7][\da-f])*(,|$))+$/iv;

/**
 * Where traces go, and which: https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/.
 * OpenTelemetry's exporters and detectors read address, headers, timeout, name and attributes from the environment
 * themselves; here these are described and checked.
 */
export const tracingVariables = {
  OTEL_EXPORTER_OTLP_ENDPOINT: endpoint
    .optional()
    .describe(
      'Base address of the OpenTelemetry collector that gets the traces, by OTLP over HTTP at /v1/traces below it (http://collector:4318); without it there are no traces, and their code is not loaded.',
    ),
  OTEL_EXPORTER_OTLP_HEADERS: secret(
    z.string().regex(headers, `${pairsError}, of headers`),
    'Headers for the collector, as a comma list of key=value, percent-encoded.',
  ),
  OTEL_EXPORTER_OTLP_PROTOCOL: choice(['http/protobuf', 'http/json'])
    .default('http/protobuf')
    .describe('Format of the traces.'),
  OTEL_EXPORTER_OTLP_TIMEOUT: milliseconds(1)
    .default(10_000)
    .describe('Longest export of a batch, its retries included, in milliseconds.'),
  OTEL_BSP_SCHEDULE_DELAY: milliseconds(10)
    .default(5000)
    .describe('Time between two exports, in milliseconds; a full batch of 512 spans goes at once.'),
  OTEL_SERVICE_NAME: text
    .optional()
    .describe('Name of the service in traces; quillgate-api and quillgate-worker when it is not set.'),
  OTEL_RESOURCE_ATTRIBUTES: z
    .string()
    .regex(pairs, `${pairsError}, with at most 255 characters on each side`)
    .optional()
    .describe('Further attributes of the service in traces, as a comma list of key=value, percent-encoded.'),
  OTEL_TRACES_SAMPLER: choice([
    'always_on',
    'always_off',
    'traceidratio',
    'parentbased_always_on',
    'parentbased_always_off',
    'parentbased_traceidratio',
  ])
    .default('parentbased_always_on')
    .describe(
      'Which traces are recorded: all, none or a share (traceidratio); with parentbased_ a caller who sends a traceparent decides.',
    ),
  OTEL_TRACES_SAMPLER_ARG: share.default(1).describe('The share for traceidratio, from 0 to 1.'),
  OTEL_SDK_DISABLED: choice(['true', 'false']).default('false').describe('Whether traces are switched off.'),
};
