import { useId } from 'preact/hooks';
import type { Message, Role } from '../../shared/contract.ts';
import { Options } from '../parts/field.tsx';

interface ConversationProps {
  messages: readonly Message[];
  onChange(messages: Message[]): void;
}

const roles: readonly Role[] = ['system', 'user', 'assistant'];

/** The messages, oldest first, each with its sender. */
export function Conversation({ messages, onChange }: ConversationProps) {
  const replace = (at: number, change: Message) =>
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

const nextRole = (messages: readonly Message[]): Role =>
  messages.at(-1)?.role === 'user' ? 'assistant' : 'user';

interface MessageFieldsProps {
  number: number;
  message: Message;
  onChange(change: Message): void;
  onRemove: (() => void) | undefined;
}

function MessageFields({ number, message, onChange, onRemove }: MessageFieldsProps) {
  const id = useId();
  return (
    <div class="message">
      <div class="row">
        <select
          aria-label={`Sender of message ${number}`}
          value={message.role ?? 'user'}
          onChange={({ currentTarget }) => onChange({ role: currentTarget.value as Role })}
        >
          <Options of={roles.map((role) => [role, role])} />
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
        value={message.content ?? ''}
        onInput={({ currentTarget }) => onChange({ content: currentTarget.value })}
      />
    </div>
  );
}
