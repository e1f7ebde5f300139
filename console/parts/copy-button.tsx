import { useState } from 'preact/hooks';

/** Copies a text; says so, or that the browser does not allow it (it does on https: and on this machine alone). */
export function CopyButton({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [outcome, setOutcome] = useState('');
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setOutcome('Copied');
    } catch {
      setOutcome('The browser blocked copying. Select the text instead.');
    }
  };
  return (
    <span class="row">
      <button type="button" onClick={() => void copy()}>
        {label}
      </button>
      <span class="soft" role="status">
        {outcome}
      </span>
    </span>
  );
}
