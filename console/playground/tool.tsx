import { useId } from 'preact/hooks';
import type { CompletionToolCall } from '../../shared/contracts/completion-contract.ts';
import { TextField } from '../parts/field.tsx';
import { parseObject, type ToolFields } from './request.ts';

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
      <div class="message">
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
        <div key={n} class="message">
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
export const CallText = ({ call: { function: called } }: { call: CompletionToolCall }) => (
  <p>
    Calls <code>{called.name}</code> with <code>{called.arguments}</code>
  </p>
);
