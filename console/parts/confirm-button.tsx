import { useLayoutEffect, useRef, useState } from 'preact/hooks';

interface ConfirmProps {
  label: string;
  /** The object of the action. */
  of: string;
  question: string;
  onConfirm(): Promise<void>;
}

/** A button that asks once more, in its place; Escape takes it back. */
export function ConfirmButton({ label, of, question, onConfirm }: ConfirmProps) {
  const [state, setState] = useState<'idle' | 'asking' | 'busy' | 'cancelled'>('idle');
  const first = useRef<HTMLButtonElement>(null);
  const cancel = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => {
    if (state === 'asking') cancel.current?.focus();
    if (state === 'cancelled') first.current?.focus();
  }, [state]);
  const confirm = () => {
    setState('busy');
    void onConfirm().finally(() => setState('idle'));
  };
  const action = { type: 'button', class: 'danger', 'aria-label': `${label} ${of}` } as const;
  if (state === 'idle' || state === 'cancelled')
    return (
      <button {...action} ref={first} onClick={() => setState('asking')}>
        {label}
      </button>
    );
  return (
    <fieldset class="row" onKeyDown={({ key }) => key === 'Escape' && setState('cancelled')}>
      <legend>{question}</legend>
      <button {...action} disabled={state === 'busy'} onClick={confirm}>
        {label}
      </button>
      <button type="button" ref={cancel} disabled={state === 'busy'} onClick={() => setState('cancelled')}>
        Cancel
      </button>
    </fieldset>
  );
}

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
