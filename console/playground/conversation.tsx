import { useId } from 'preact/hooks';
import type { Role } from '../../shared/contracts/contract.ts';
import { Options } from '../parts/field.tsx';
import type { PlaygroundMessage } from './request.ts';
import { CallText } from './tool.tsx';

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
    <div class="message">
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
