import type { InputHTMLAttributes, SelectHTMLAttributes } from 'preact';
import { useId } from 'preact/hooks';

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
