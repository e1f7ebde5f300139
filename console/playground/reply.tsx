import { formatDuration } from '../parts/format.ts';
import { ErrorNotice } from '../parts/notice.tsx';
import type { ChatProgress } from './chat.ts';

const states = {
  running: 'Waiting for the reply…',
  completed: 'Completed',
  failed: 'Failed',
  stopped: 'Stopped',
};

/** The reply as far as it has come, how it ended, and how long that took. */
export function Reply({ progress }: { progress: ChatProgress }) {
  const { state, text, error } = progress;
  return (
    <section aria-labelledby="reply" class="card">
      <div class="row card-head">
        <h2 id="reply">Reply</h2>
        <span class="soft" role="status">
          {state === 'running' && text !== '' ? 'Being written…' : states[state]}
        </span>
      </div>
      {text !== '' && <p class="reply">{text}</p>}
      {state === 'failed' && <ErrorNotice error={error} />}
      <Facts progress={progress} />
    </section>
  );
}

function Facts({ progress: { firstTextMs, totalMs, completion } }: { progress: ChatProgress }) {
  const { usage, attempts = [] } = completion ?? {};
  const facts: [name: string, value: string | undefined][] = [
    ['First text after', firstTextMs === undefined ? undefined : formatDuration(firstTextMs)],
    ['In all', totalMs === undefined ? undefined : formatDuration(totalMs)],
    ['Provider', completion?.provider],
    ['Model', completion?.model],
    ['Ended with', completion?.finishReason],
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
