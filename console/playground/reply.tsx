import type { RequestDetails } from '../../shared/contracts/ledger.ts';
import { ApiError } from '../api.ts';
import { useAnswer } from '../parts/answer.ts';
import { ErrorNotice, Facts } from '../parts/field.tsx';
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
      <ReplyFacts progress={progress} />
    </section>
  );
}

/** The providers' own errors, which callers do not see; a request is in the ledger a second after its end. */
function FailureReason({ id }: { id: string }) {
  const { value } = useAnswer<RequestDetails>(
    `/admin/requests/${id}`,
    1000,
    (details, reads) => details?.state === 'ended' || reads === 3,
  );
  if (value?.state !== 'ended') return null;
  const reasons = (value?.attempts ?? []).flatMap(({ provider, error }) =>
    error ? [`${provider} answered ${describeProviderError(error)}.`] : [],
  );
  return (
    <p>
      {reasons.join(' ')} <a href={`#/requests/${id}`}>Show the request</a>
    </p>
  );
}

function ReplyFacts({ progress: { firstTextMs, totalMs, completion } }: { progress: ChatProgress }) {
  const { usage, attempts = [] } = completion ?? {};
  return (
    <Facts
      facts={[
        ['First text after', firstTextMs && formatDuration(firstTextMs)],
        ['In all', totalMs && formatDuration(totalMs)],
        ['Provider', completion?.provider],
        ['Model', completion?.model],
        ['Ended with', completion?.finishReason],
        ['Tokens read', usage?.inputTokens],
        ['Tokens written', usage?.outputTokens],
        ['Attempts', attempts.map(({ provider, code }) => `${provider}: ${code}`).join(', ')],
      ]}
    />
  );
}
