import { useId, useState } from 'preact/hooks';
import type { ConcurrencySuggestion } from '../../shared/contracts/fleet-contract.ts';
import { ConfirmButton } from '../parts/confirm-button.tsx';
import { labelOf } from './setting-fields.ts';
import { SettingSource } from './setting-source.tsx';
import type { PoolSettingsEditor } from './settings.ts';

/** Slider and field of one value: jobs at once in each worker. It applies when the slider is let go. */
export function ConcurrencyControl({ editor }: { editor: PoolSettingsEditor }) {
  const id = useId();
  const [draft, setDraft] = useState<number>();
  const setting = editor.find('concurrency');
  if (setting === undefined) return null;
  const current = Number(setting.value);
  const suggestion = editor.known.value?.suggestion;
  const value = draft ?? current;
  const onInput = ({ currentTarget }: { currentTarget: HTMLInputElement }) => {
    editor.begin();
    setDraft(currentTarget.valueAsNumber);
  };
  const onChange = async ({ currentTarget }: { currentTarget: HTMLInputElement }) => {
    const wanted = currentTarget.valueAsNumber;
    const isChange = Number.isInteger(wanted) && wanted !== current;
    if (isChange) await editor.change({ concurrency: wanted });
    else editor.cancel();
    setDraft(undefined);
  };
  const shown = Number.isNaN(value) ? '' : value;
  const common = { min: 1, value: shown, onInput, onChange: (event: never) => void onChange(event) };
  return (
    <div class="field">
      <label for={id}>{labelOf('concurrency')}</label>
      <div class="row">
        <input
          {...common}
          id={id}
          class="slider"
          type="range"
          max={rangeOf(current, suggestion?.perWorker)}
        />
        <input
          {...common}
          class="short number"
          type="number"
          max={10_000}
          aria-label="Jobs at once, exactly"
        />
      </div>
      <SettingSource editor={editor} setting={setting} />
      {suggestion && suggestion.perWorker !== current && (
        <Suggestion editor={editor} suggestion={suggestion} />
      )}
    </div>
  );
}

/** Wide enough for what is set and suggested, and round. */
function rangeOf(value: number, suggested = 0): number {
  const wanted = 2 * Math.max(value, suggested);
  return [50, 100, 200, 500, 1000, 2000, 5000].find((max) => max >= wanted) ?? 10_000;
}

interface SuggestionProps {
  editor: PoolSettingsEditor;
  suggestion: ConcurrencySuggestion;
}

function Suggestion({ editor, suggestion }: SuggestionProps) {
  const { perWorker, arrivalsPerSecond, meanMs, jobs } = suggestion;
  return (
    <div class="soft">
      Suggested: {perWorker}, for {arrivalsPerSecond.toFixed(1)} arrivals a second that take{' '}
      {(meanMs / 1000).toFixed(1)} s each ({jobs} jobs in five minutes).{' '}
      <ConfirmButton
        label={`Set ${perWorker}`}
        of="jobs at once in each worker"
        question={`Change the jobs at once in each worker to ${perWorker}?`}
        onConfirm={() => editor.change({ concurrency: perWorker })}
      />
    </div>
  );
}
