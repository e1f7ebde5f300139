import type { Target } from '../../shared/contracts/contract.ts';
import type { RecentRequest, RequestCode } from '../../shared/contracts/history.ts';
import { CopyButton } from '../parts/confirm-button.tsx';
import { describeProviderError, formatNumber, formatTime } from '../parts/format.ts';
import { Table } from '../parts/paged-table.tsx';
import { nameOf } from '../pools/describe.ts';
import { Timeline } from './timeline.tsx';

const isAnswered = (code: RequestCode): boolean => code === 'ok' || code === 'truncated';
const toneOf = (code: RequestCode): string => {
  if (isAnswered(code)) return 'good';
  return code === 'cancelled' || code === 'blocked' ? 'warn' : 'bad';
};

/** Chats, one a row. */
export function RequestTable({ requests }: { requests: readonly RecentRequest[] }) {
  const longestMs = Math.max(1, ...requests.map(({ endedMs }) => endedMs));
  return (
    <Table
      label="Table of requests"
      titles={[
        'Received',
        'User',
        'Provider and model',
        'Result',
        'Times after receipt',
        ['Tokens', 'number'],
      ]}
    >
      {requests.map((request) => (
        <Row key={request.id} request={request} longestMs={longestMs} />
      ))}
    </Table>
  );
}

function Row({ request, longestMs }: { request: RecentRequest; longestMs: number }) {
  const { id, user, streamed, receivedAt, code, attempts } = request;
  const { asked, answered } = targetsOf(request);
  return (
    <tr>
      <td>
        <time dateTime={receivedAt}>{formatTime(receivedAt)}</time>
        <br />
        <code class="id">{id}</code> <CopyButton text={id} label="Copy id" />
      </td>
      <td>{user}</td>
      <td>
        <TargetName {...asked} />
        {streamed && <span class="soft"> streamed</span>}
        {answered && (
          <div>
            <span aria-hidden="true">→</span> <span class="soft">answered by</span>{' '}
            <TargetName {...answered} />
          </div>
        )}
      </td>
      <td>
        <span class={toneOf(code)}>{code}</span>
        {(attempts.length > 1 || attempts[0]?.providerError) && (
          <ol class="attempts">
            {attempts.map((attempt, n) => (
              <li key={`${n} ${attempt.provider}`}>
                {nameOf(attempt.provider)}{' '}
                <span class="soft">
                  {attempt.code}
                  {attempt.providerError && ` (${describeProviderError(attempt.providerError)})`}
                </span>
              </li>
            ))}
          </ol>
        )}
      </td>
      <td>
        <Timeline request={request} longestMs={longestMs} />
      </td>
      <td class="number">
        <Tokens request={request} />
      </td>
    </tr>
  );
}

function TargetName({ provider, model }: Target) {
  return (
    <>
      {nameOf(provider)} <span class="soft model">{model}</span>
    </>
  );
}

/** The target that was asked and, if a fallback answered, the one that answered. */
export function targetsOf({ provider, model, code, attempts }: RecentRequest): {
  asked: Target;
  answered?: Target;
} {
  const [first, last] = [attempts[0], attempts.at(-1)];
  if (attempts.length < 2 || first === undefined || last === undefined) return { asked: { provider, model } };
  return {
    asked: { provider, model: first.model },
    ...(isAnswered(code) && { answered: { provider: last.provider, model: last.model ?? model } }),
  };
}

function Tokens({ request: { inputTokens, outputTokens } }: { request: RecentRequest }) {
  if (inputTokens === undefined || outputTokens === undefined) return <>–</>;
  return (
    <>
      {formatNumber(inputTokens)} in
      <br />
      {formatNumber(outputTokens)} out
    </>
  );
}
