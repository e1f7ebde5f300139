import type { LedgerRequest, RequestCode } from '../../shared/contracts/ledger.ts';
import {
  describeProviderError,
  formatCost,
  formatDuration,
  formatNumber,
  formatTime,
} from '../parts/format.ts';
import { nameOf, type Tone } from '../pools/describe.ts';

/** The columns of requests. */
export const requestTitles = [
  'Ended, UTC',
  'Id',
  ['User', 'user'],
  ['Asked → answered', 'targets'],
  ['Result', 'result'],
  ...['Waited', 'Called', 'Total', 'Tokens in / out', 'Cost'].map((title) => [title, 'number'] as const),
] as const;

/** A request that has ended, in one line. */
export function RequestRow({ request }: { request: LedgerRequest }) {
  const { id, endedAt, user, result, error, waitedMs, calledMs, totalMs, tokens, calls } = request;
  const targets = describeTargets(request);
  return (
    <tr>
      <td class="ended">
        <time dateTime={endedAt}>{formatTime(endedAt)}</time>
      </td>
      <td class="id">
        <a href={`#/requests/${id}`} title={id}>
          {id.slice(0, 8)}
        </a>
      </td>
      <td class="user cut" title={user}>
        {user}
      </td>
      <td class="targets cut" title={targets}>
        {targets}
      </td>
      <td class="result cut" title={error ? describeProviderError(error) : undefined}>
        <span class={toneOf(result)}>{result}</span>
        {error && <span class="soft"> {[error.status, error.type].filter(Boolean).join(' ')}</span>}
      </td>
      <td class="number waited">{waitedMs === null ? '–' : formatDuration(waitedMs)}</td>
      <td class="number called">{calledMs === null ? '–' : formatDuration(calledMs)}</td>
      <td class="number total">{formatDuration(totalMs)}</td>
      <td class="number tokens">
        {calls === 0 ? '–' : `${formatNumber(tokens.input)} / ${formatNumber(tokens.output)}`}
      </td>
      <td class="number cost">{formatCost(request).replace('at least', '≥')}</td>
    </tr>
  );
}

/** The colour of a result. */
export function toneOf(result: RequestCode | string): Tone {
  if (result === 'ok' || result === 'truncated') return 'good';
  return result === 'cancelled' || result === 'blocked' ? 'warn' : 'bad';
}

interface Targets {
  readonly provider: string;
  readonly model: string | null;
  readonly answeredProvider: string | null;
  readonly answeredModel: string | null;
}

/** `OpenAI gpt-5 → Anthropic claude`; the answering one is left out where it is the asked one. */
export function describeTargets({ provider, model, answeredProvider, answeredModel }: Targets): string {
  const asked = [nameOf(provider), model].filter(Boolean).join(' ');
  const isOther = answeredProvider !== null && answeredProvider !== provider;
  const answered = [isOther && nameOf(answeredProvider), answeredModel !== model && answeredModel];
  return [asked, answered.filter(Boolean).join(' ')].filter(Boolean).join(' → ');
}
