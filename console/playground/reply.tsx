import type { RecentRequests } from '../../shared/contracts/history.ts';
import { ApiError } from '../api.ts';
import { ErrorNotice, useAnswer } from '../parts/field.tsx';
import { describeProviderError, formatDuration } from '../parts/format.ts';
import { answerCalls, type ChatProgress } from './chat.ts';
import { Calls } from './conversation.tsx';
import type { PlaygroundMessage } from './request.ts';

const states = {
  running: 'Waiting for the reply…',
  completed: 'Completed',
  failed: 'Failed',
  stopped: 'Stopped',
};

interface ReplyProps {
  progress: ChatProgress;
  /** Takes the messages that go on with the reply. */
  onAnswer(messages: PlaygroundMessage[]): void;
}

/** The reply as far as it has come, how it ended, and how long that took. */
export function Reply({ progress, onAnswer }: ReplyProps) {
  const { state, text, calls, error, completion } = progress;
  const isWhole = state === 'completed' && completion?.finishReason === 'tool_calls';
  const answer = (results: string[]) => onAnswer(answerCalls(progress, results));
  return (
    <section aria-labelledby="reply" class="card">
      <div class="row card-head">
        <h2 id="reply">Reply</h2>
        <span class="soft" role="status">
          {state === 'running' && (text !== '' || calls.length > 0) ? 'Being written…' : states[state]}
        </span>
      </div>
      {text !== '' && <p class="reply">{text}</p>}
      {calls.length > 0 && <Calls calls={calls} onAnswer={isWhole ? answer : undefined} />}
      {state === 'failed' && <ErrorNotice error={error} />}
      {state === 'failed' && error instanceof ApiError && error.problem?.requestId && (
        <FailureReason id={error.problem.requestId} />
      )}
      <Facts progress={progress} />
    </section>
  );
}

/** The providers' own errors, which callers do not see. */
function FailureReason({ id }: { id: string }) {
  const answer = useAnswer<RecentRequests>(`/admin/requests?id=${encodeURIComponent(id)}`);
  const reasons = (answer?.requests[0]?.attempts ?? []).flatMap(({ provider, providerError }) =>
    providerError ? [`${provider} answered ${describeProviderError(providerError)}`] : [],
  );
  if (reasons.length === 0) return null;
  return (
    <p>
      {reasons.join(', ')}. <a href={`#/requests?id=${id}`}>Show the request</a>
    </p>
  );
}

function Facts({ progress: { firstTextMs, totalMs, completion } }: { progress: ChatProgress }) {
  const { usage, attempts = [] } = completion ?? {};
  const facts: [name: string, value: string | undefined][] = [
    ['First text after', firstTextMs === undefined ? undefined : formatDuration(firstTextMs)],
    ['In all', totalMs === undefined ? undefined : formatDuration(totalMs)],
    ['Provider', completion?.provider],
    ['Model', completion?.model],
    ['Ended with', completion?.finishReason || undefined],
    ['Tokens read', usage?.inputTokens?.toString()],
    ['Tokens written', usage?.outputTokens?.toString()],
    ['Attempts', attempts.map(({ provider, code }) => `${provider}: ${code}`).join(', ') || undefined],
  ];
  return (
    <dl class="facts">
      {facts.map(
        ([name, value]) =>
          value !== undefined && (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ),
      )}
    </dl>
  );
}
