import { useId } from 'preact/hooks';
import type { CompletionToolCall } from '../../shared/contracts/completion-contract.ts';
import type { Role } from '../../shared/contracts/contract.ts';
import { Options, TextField } from '../parts/field.tsx';
import { type PlaygroundMessage, parseObject, type ToolFields } from './request.ts';

interface ConversationProps {
  messages: readonly PlaygroundMessage[];
  onChange(messages: PlaygroundMessage[]): void;
}

const roles: readonly Role[] = ['system', 'user', 'assistant'];

/** The messages, oldest first, each with its sender. */
export function Conversation({ messages, onChange }: ConversationProps) {
  const replace = (at: number, change: Partial<PlaygroundMessage>) =>
    onChange(messages.map((message, n) => (n === at ? { ...message, ...change } : message)));
  const add = () => onChange([...messages, { role: nextRole(messages), content: '' }]);
  return (
    <fieldset class="stacked">
      <legend>Messages</legend>
      {messages.map((message, n) => (
        <MessageFields
          key={n}
          number={n + 1}
          message={message}
          onChange={(change) => replace(n, change)}
          onRemove={messages.length > 1 ? () => onChange(messages.filter((_, m) => m !== n)) : undefined}
        />
      ))}
      <div>
        <button type="button" onClick={add}>
          Add a message
        </button>
      </div>
    </fieldset>
  );
}

const nextRole = (messages: readonly PlaygroundMessage[]): Role =>
  messages.at(-1)?.role === 'user' ? 'assistant' : 'user';

interface MessageFieldsProps {
  number: number;
  message: PlaygroundMessage;
  onChange(change: Partial<PlaygroundMessage>): void;
  onRemove: (() => void) | undefined;
}

function MessageFields({ number, message, onChange, onRemove }: MessageFieldsProps) {
  const id = useId();
  const { role, content, tool_calls: calls = [], tool_call_id: callId } = message;
  const isOfTool = calls.length > 0 || callId !== undefined;
  return (
    <div class="stacked message">
      <div class="row">
        <select
          aria-label={`Sender of message ${number}`}
          value={role}
          onChange={({ currentTarget }) => onChange({ role: currentTarget.value as Role })}
        >
          <Options of={(isOfTool ? [role] : roles).map((name) => [name, name])} />
        </select>
        {onRemove && (
          <button type="button" class="plain" onClick={onRemove}>
            Remove<span class="hidden"> message {number}</span>
          </button>
        )}
      </div>
      <label class="hidden" for={id}>
        Text of message {number}
      </label>
      <textarea
        id={id}
        rows={3}
        value={content}
        onInput={({ currentTarget }) => onChange({ content: currentTarget.value })}
      />
      {calls.map((call) => (
        <CallText key={call.id} call={call} />
      ))}
    </div>
  );
}

interface ToolFormProps {
  tool: ToolFields;
  onChange(facts: Partial<ToolFields>): void;
}

/** The tool that the model may call. */
export function ToolForm({ tool: { name, description, parameters }, onChange }: ToolFormProps) {
  const id = useId();
  return (
    <details class="snippet">
      <summary>Tool</summary>
      <div class="stacked message">
        <TextField
          label="Function"
          value={name}
          placeholder="none"
          onInput={({ currentTarget }) => onChange({ name: currentTarget.value.trim() })}
        />
        <TextField
          label="Description"
          value={description}
          onInput={({ currentTarget }) => onChange({ description: currentTarget.value })}
        />
        <label for={id}>Parameters, as a JSON Schema</label>
        <textarea
          id={id}
          rows={6}
          spellcheck={false}
          value={parameters}
          onInput={({ currentTarget }) => onChange({ parameters: currentTarget.value })}
        />
        {!parseObject(parameters) && <p role="alert">The parameters must be a JSON object.</p>}
      </div>
    </details>
  );
}

interface CallsProps {
  calls: readonly CompletionToolCall[];
  /** Takes the results in the order of the calls; absent while the calls cannot be answered. */
  onAnswer: ((results: string[]) => void) | undefined;
}

/** The calls of a reply, with a field for the result of each. */
export function Calls({ calls, onAnswer }: CallsProps) {
  return (
    <form
      class="stacked"
      onSubmit={(event) => {
        event.preventDefault();
        onAnswer?.(new FormData(event.currentTarget).getAll('result').map(String));
      }}
    >
      {calls.map((call, n) => (
        <div key={n} class="stacked message">
          <CallText call={call} />
          {onAnswer && <TextField label={`Result of call ${n + 1}`} name="result" />}
        </div>
      ))}
      {onAnswer && (
        <div>
          <button type="submit" class="primary">
            Send the result
          </button>
        </div>
      )}
    </form>
  );
}

/** A call as people read it. */
const CallText = ({ call: { function: called } }: { call: CompletionToolCall }) => (
  <p>
    Calls <code>{called.name}</code> with <code>{called.arguments}</code>
  </p>
);
