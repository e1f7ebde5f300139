import { useId, useState } from 'preact/hooks';
import type { PoolSetting, PoolSettings } from '../../shared/fleet-contract.ts';
import { SettingSource } from './setting-source.tsx';
import type { PoolSettingsEditor } from './settings.ts';

/** Slider and field of one value: jobs at once in each worker. It applies when the slider is let go. */
export function ConcurrencyControl({ editor }: { editor: PoolSettingsEditor }) {
  const settings = editor.known.value;
  const setting = settings?.settings.find(({ name }) => name === 'concurrency');
  if (settings === undefined || setting === undefined) return null;
  return <Control editor={editor} settings={settings} setting={setting} />;
}

interface ControlProps {
  editor: PoolSettingsEditor;
  settings: PoolSettings;
  setting: PoolSetting;
}

function Control({ editor, settings, setting }: ControlProps) {
  const id = useId();
  const [draft, setDraft] = useState<number>();
  const value = draft ?? Number(setting.value);
  const onInput = ({ currentTarget }: { currentTarget: HTMLInputElement }) => {
    editor.begin();
    setDraft(currentTarget.valueAsNumber);
  };
  const onChange = async ({ currentTarget }: { currentTarget: HTMLInputElement }) => {
    const wanted = currentTarget.valueAsNumber;
    const isChange = Number.isInteger(wanted) && wanted !== Number(setting.value);
    if (isChange) await editor.change({ concurrency: wanted });
    else editor.cancel();
    setDraft(undefined);
  };
  const shown = Number.isNaN(value) ? '' : value;
  const common = { min: 1, value: shown, onInput, onChange: (event: never) => void onChange(event) };
  return (
    <div class="setting">
      <label for={id}>Jobs at once, in each worker</label>
      <div class="row">
        <input
          {...common}
          id={id}
          class="slider"
          type="range"
          max={rangeOf(settings, Number(setting.value))}
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
      <Suggestion editor={editor} settings={settings} value={Number(setting.value)} />
    </div>
  );
}

/** Wide enough for what is set and suggested, and round. */
function rangeOf({ suggestion }: PoolSettings, value: number): number {
  const wanted = 2 * Math.max(value, suggestion?.perWorker ?? 0);
  return [50, 100, 200, 500, 1000, 2000, 5000].find((max) => max >= wanted) ?? 10_000;
}

interface SuggestionProps {
  editor: PoolSettingsEditor;
  settings: PoolSettings;
  value: number;
}

function Suggestion({ editor, settings: { suggestion }, value }: SuggestionProps) {
  if (suggestion === undefined || suggestion.perWorker === value) return null;
  const { perWorker, arrivalsPerSecond, meanMs, jobs } = suggestion;
  return (
    <p class="soft">
      Suggested: {perWorker}, for {arrivalsPerSecond.toFixed(1)} arrivals a second that take{' '}
      {(meanMs / 1000).toFixed(1)} s each ({jobs} jobs in five minutes).{' '}
      <button type="button" class="plain" onClick={() => void editor.change({ concurrency: perWorker })}>
        Set {perWorker}
      </button>
    </p>
  );
}
