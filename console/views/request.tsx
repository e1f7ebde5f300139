import { useState } from 'preact/hooks';
import type { LedgerCall, RequestDetails } from '../../shared/contracts/ledger.ts';
import { useAnswer } from '../parts/answer.ts';
import { Bar } from '../parts/chart.tsx';
import { CopyButton } from '../parts/confirm-button.tsx';
import { Age } from '../parts/connection.tsx';
import { ErrorNotice, Facts } from '../parts/field.tsx';
import {
  describeProviderError,
  describeTokens,
  formatCost,
  formatDuration,
  formatTime,
} from '../parts/format.ts';
import { addressOf, Table } from '../parts/paged-table.tsx';
import { CancelButton } from '../pools/cancel-button.tsx';
import { nameOf } from '../pools/describe.ts';
import { describeResult, phasesOf } from '../requests/describe-request.ts';
import { describeTargets, toneOf } from '../requests/request-table.tsx';

const rereadMs = 2000;

/** All that is known of one request, read again until it has ended. */
export function RequestView({ id }: { id: string }) {
  const path = `/admin/requests/${encodeURIComponent(id)}`;
  const {
    value: details,
    error,
    readAgain,
  } = useAnswer<RequestDetails>(path, rereadMs, (read) => read?.state === 'ended');
  const [cancelError, setCancelError] = useState<unknown>();
  const { request, job, askedFor, state } = details ?? {};
  const known = request?.id ?? job?.id.slice(0, 36) ?? id;
  return (
    <>
      <p class="soft">
        <a href="#/requests">All requests</a>
      </p>
      <h1>Request</h1>
      <p class="row">
        <code class="id">{known}</code> <CopyButton text={known} label="Copy id" />
      </p>
      <ErrorNotice error={cancelError ?? (details ? undefined : error)} />
      {askedFor && (
        <p>
          The request <code>{askedFor}</code> was given the reply of this one.
        </p>
      )}
      {job && (
        <>
          <p role="status">
            The chat of {job.user} with {[nameOf(job.provider), job.model].filter(Boolean).join(' ')}{' '}
            {state === 'waiting' ? 'waits' : 'runs'}; it came <Age since={job.addedAt} /> ago.
          </p>
          <CancelButton id={job.id} onDone={readAgain} onError={setCancelError} />
        </>
      )}
      {details?.state === 'ended' && <Ended details={details} />}
    </>
  );
}

function Ended({ details: { request, attempts, calls } }: { details: RequestDetails }) {
  if (request === null) return null;
  const { user, token, tokenName, api, session, result, streamed, stored } = request;
  const by = token === null ? 'with the secret' : `by the token ${tokenName ?? token}`;
  const how = [api, request.console && 'console', streamed && 'streamed', stored && 'stored'];
  const phases = Object.entries(phasesOf(request, calls));
  const linkTo = (filter: { user: string } | { session: string }, text: string) => (
    <a href={`#${addressOf('/requests', filter)}`}>{text}</a>
  );
  return (
    <>
      <p>
        <span class={toneOf(result)}>{result}</span>: {describeResult(request)}
      </p>
      <Bar parts={phases} of={request.totalMs} />
      <p class="soft">
        {phases.flatMap(([name, ms]) => (ms > 0 ? `${name} ${formatDuration(ms)}, ` : []))}
        {request.firstTokenMs !== null && `first token after ${formatDuration(request.firstTokenMs)}, `}
        {formatDuration(request.totalMs)} in all
      </p>
      <Facts
        facts={[
          ['User', linkTo({ user }, user)],
          ['Access', [by, ...how].filter(Boolean).join(', ')],
          ['Asked → answered', describeTargets(request)],
          ['Came, UTC', formatTime(request.addedAt)],
          ['Ended, UTC', formatTime(request.endedAt)],
          ['Cost', formatCost(request)],
          ['Tokens', describeTokens(request.tokens)],
          ['Session', session && linkTo({ session }, session)],
        ]}
      />
      <section aria-labelledby="attempts">
        <h2 id="attempts">Attempts</h2>
        {attempts.length === 0 && <p class="soft">None: it was refused before.</p>}
        <ol>
          {attempts.map(({ provider, model, code, error }, n) => (
            <li key={n}>
              {[nameOf(provider), model].filter(Boolean).join(' ')}: <span class={toneOf(code)}>{code}</span>
              {error && <span class="soft"> {describeProviderError(error)}</span>}
            </li>
          ))}
        </ol>
      </section>
      <section aria-labelledby="calls">
        <h2 id="calls">Calls of providers</h2>
        {calls.length === 0 ? <p class="soft">None.</p> : <CallTable calls={calls} />}
      </section>
    </>
  );
}

const callTitles = [
  'Attempt',
  'Call',
  'Asked → answered',
  'Began, UTC',
  ['Took', 'number'] as const,
  'Result',
  'Tokens',
  'Known',
  ['Cost', 'number'] as const,
  'Provider’s request id',
];
const known = {
  told: 'counted',
  estimated: 'estimated, at least',
  lost: 'lost run, which may have made calls',
};

function CallTable({ calls }: { calls: readonly LedgerCall[] }) {
  return (
    <Table label="Table of calls" titles={callTitles}>
      {calls.map((one, n) => (
        <tr key={n}>
          <td>{one.run > 1 ? `${one.attempt}, run ${one.run}` : one.attempt}</td>
          <td>{one.requests > 1 ? `${one.kind}, ${one.requests} requests` : one.kind}</td>
          <td>{describeTargets({ ...one, answeredProvider: null })}</td>
          <td>
            <time dateTime={one.startedAt}>{formatTime(one.startedAt)}</time>
          </td>
          <td class="number">{formatDuration(Date.parse(one.endedAt) - Date.parse(one.startedAt))}</td>
          <td>
            <span class={toneOf(one.code ?? '')}>{one.code}</span>{' '}
            <span class="soft">{[one.status, one.type].filter(Boolean).join(' ')}</span>
          </td>
          <td>{one.known === 'lost' ? '–' : describeTokens(one.tokens)}</td>
          <td>{known[one.known]}</td>
          <td class="number" title={one.priceDated ? `by the price of ${one.priceDated}` : undefined}>
            {formatCost({ ...one, calls: 1, estimated: Number(one.known === 'estimated'), lost: 0 })}
          </td>
          <td class="row">
            {one.requestId && <code class="id">{one.requestId}</code>}
            {one.requestId && <CopyButton text={one.requestId} />}
          </td>
        </tr>
      ))}
    </Table>
  );
}
