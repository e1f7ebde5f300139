import type { ComponentChildren, InputHTMLAttributes, SelectHTMLAttributes } from 'preact';
import { useId } from 'preact/hooks';
import { ApiError } from '../api.ts';

/** A line of text with its label; besides, it takes what an `<input>` takes. */
export function TextField({ label, ...input }: { label: string } & InputHTMLAttributes) {
  const id = useId();
  return (
    <span class="field">
      <label for={id}>{label}</label>
      <input {...input} id={id} spellcheck={false} />
    </span>
  );
}

/** `selected` is for a choice whose value the page does not follow. */
type SelectFieldProps = { label: string; options: OptionTexts; selected?: string } & SelectHTMLAttributes;

/** A choice with its label; besides, it takes what a `<select>` takes. */
export function SelectField({ label, options, selected, ...select }: SelectFieldProps) {
  const id = useId();
  return (
    <span class="field">
      <label for={id}>{label}</label>
      <select {...select} id={id}>
        <Options of={options} selected={selected} />
      </select>
    </span>
  );
}

/** The choices, in order. */
export type OptionTexts = readonly (readonly [value: string, text: string])[];

/** The options of a `<select>`; `selected` is for one whose value the page does not follow. */
export function Options({ of, selected }: { of: OptionTexts; selected?: string | undefined }) {
  return (
    <>
      {of.map(([value, text]) => (
        <option key={value} value={value} selected={value === selected || undefined}>
          {text}
        </option>
      ))}
    </>
  );
}

/** Why something did not work: the server's words, each place that is wrong, and the id for its operators. */
export function ErrorNotice({ error }: { error: unknown }) {
  if (error === undefined) return null;
  const problem = error instanceof ApiError ? error.problem : undefined;
  return (
    <div class="notice bad" role="alert">
      <p>{error instanceof Error ? error.message : String(error)}</p>
      {problem?.code === 'database_unavailable' && (
        <p>Chats, the board of pools with its waiting jobs, and the logs go on without the database.</p>
      )}
      {problem?.errors && (
        <ul>
          {problem.errors.map(({ pointer, detail }) => (
            <li key={pointer}>
              <code>{pointer}</code> {detail}
            </li>
          ))}
        </ul>
      )}
      {problem?.requestId && <p class="soft">Request {problem.requestId}</p>}
    </div>
  );
}

/** Facts by their names; one without a value is left out. */
export function Facts({ facts }: { facts: readonly (readonly [name: string, value: ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {facts.map(
        ([name, value]) =>
          (value ?? '') !== '' && (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ),
      )}
    </dl>
  );
}
