import { useEffect, useId, useMemo, useState } from 'preact/hooks';
import { useAnswer } from '../parts/answer.ts';
import { CopyButton } from '../parts/confirm-button.tsx';
import { SelectField, TextField } from '../parts/field.tsx';
import { PlaygroundChat } from '../playground/chat.ts';
import { Conversation, ToolForm } from '../playground/conversation.tsx';
import { Reply } from '../playground/reply.tsx';
import {
  type PlaygroundMessage,
  type PlaygroundRequest,
  parseObject,
  toCurl,
  toOpenAi,
  usesTools,
} from '../playground/request.ts';
import { nameOf } from '../pools/describe.ts';
import type { ViewProps } from '../router.ts';
import { fleet } from '../store.ts';

const first: PlaygroundRequest = {
  provider: 'openai',
  model: '',
  fallback: '',
  wait: '',
  tool: {
    name: '',
    description: '',
    parameters: JSON.stringify({ type: 'object', properties: { city: { type: 'string' } } }, null, 2),
  },
  messages: [{ role: 'user', content: 'Say hello in three languages.' }],
};

/** A chat with any provider, by the same queue and limits as every request. */
export function PlaygroundView(_props: ViewProps) {
  const [request, setRequest] = useState(first);
  const chat = useMemo(() => new PlaygroundChat(), []);
  useEffect(() => () => chat.stop(), [chat]);
  const progress = chat.progress.value;
  const isRunning = progress?.state === 'running';
  const change = (facts: Partial<PlaygroundRequest>) => setRequest({ ...request, ...facts });
  const goOn = (text: string) =>
    change({
      messages: [...request.messages, { role: 'assistant', content: text }, { role: 'user', content: '' }],
    });
  const answer = (messages: PlaygroundMessage[]) => {
    const next = { ...request, messages: [...request.messages, ...messages] };
    setRequest(next);
    void chat.send(next);
  };
  return (
    <>
      <h1>Playground</h1>
      <div class="columns">
        <form
          class="stacked"
          onSubmit={(event) => {
            event.preventDefault();
            void chat.send(request);
          }}
        >
          <Target request={request} onChange={change} />
          <Conversation messages={request.messages} onChange={(messages) => change({ messages })} />
          <ToolForm
            tool={request.tool}
            onChange={(facts) => change({ tool: { ...request.tool, ...facts } })}
          />
          <div class="row">
            <button
              type="submit"
              class="primary"
              disabled={isRunning || !parseObject(request.tool.parameters)}
            >
              Send
            </button>
            <button type="button" disabled={!isRunning} onClick={() => chat.stop()}>
              Stop
            </button>
            {progress?.state === 'completed' && progress.calls.length === 0 && (
              <button type="button" onClick={() => goOn(progress.text)}>
                Go on with this reply
              </button>
            )}
          </div>
        </form>
        <div>
          {progress && <Reply progress={progress} onAnswer={answer} />}
          <Snippets request={request} />
        </div>
      </div>
    </>
  );
}

interface TargetProps {
  request: PlaygroundRequest;
  onChange(facts: Partial<PlaygroundRequest>): void;
}

function Target({ request, onChange }: TargetProps) {
  const id = useId();
  const providers = fleet.value?.providers ?? [];
  const { workers = [], kind } = providers.find(({ provider }) => provider === request.provider) ?? {};
  const named = workers.flatMap(({ defaultModel, models: allowed = [] }) =>
    [defaultModel ?? [], allowed].flat(),
  );
  const simulated = kind === 'simulated' ? simulatedModels : [];
  const models = [...new Set([...named, ...simulated])].filter((model) => !model.includes('*'));
  return (
    <div class="settings">
      <SelectField
        label="Provider"
        value={request.provider}
        options={providers.map(({ provider, kind }) => [
          provider,
          nameOf(provider) + (kind === 'simulated' ? ' (simulated)' : ''),
        ])}
        onChange={({ currentTarget }) => onChange({ provider: currentTarget.value })}
      />
      {fields.map(([name, label, hint]) => (
        <TextField
          key={name}
          label={label}
          value={request[name]}
          placeholder={hint}
          list={name === 'model' ? `${id}-models` : undefined}
          required={name === 'model' && usesTools(request)}
          onInput={({ currentTarget }) => onChange({ [name]: currentTarget.value })}
        />
      ))}
      <datalist id={`${id}-models`}>
        {models.map((model) => (
          <option key={model} value={model} />
        ))}
      </datalist>
    </div>
  );
}

/** A few that fail, are slow or call a tool; docs/start.md names more. */
const simulatedModels = [
  'sim-status-503',
  'sim-status-400',
  'sim-retry-after-5',
  'sim-hang',
  'sim-empty',
  'sim-blocked',
  'sim-stream-50-100',
  'sim-stream-error-10',
  'sim-latency-5000',
  'sim-tools',
];

const fields = [
  ['model', 'Model', 'its default unless named'],
  ['fallback', 'Fallback', 'such as anthropic,bedrock'],
  ['wait', 'Longest wait, in seconds', "the server's default"],
] as const;

/** The same request for programs. It does not contain credentials. */
function Snippets({ request }: { request: PlaygroundRequest }) {
  const path = useAnswer<{ links: { chat: string } }>('/').value?.links.chat ?? '/chat';
  const snippets = [
    ['curl', toCurl(request, `${location.origin}${path}`)],
    ['OpenAI for Python', toOpenAi(request, location.origin)],
  ] as const;
  return (
    <>
      {snippets.map(([title, text]) => (
        <details key={title} class="snippet">
          <summary>{title}</summary>
          <pre>
            <code>{text}</code>
          </pre>
          <CopyButton text={text} label={`Copy ${title}`} />
        </details>
      ))}
    </>
  );
}
