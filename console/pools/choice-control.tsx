import { SettingSource } from './setting-source.tsx';
import type { PoolSettingsEditor, SettingsChange } from './settings.ts';

interface Choice {
  readonly label: string;
  /** Null for what the pool does by itself. */
  readonly value: string | null;
}

interface ChoiceControlProps {
  editor: PoolSettingsEditor;
  name: 'intake' | 'breaker';
  label: string;
  choices: readonly Choice[];
}

/** Buttons of which one is pressed. */
export function ChoiceControl({ editor, name, label, choices }: ChoiceControlProps) {
  const setting = editor.known.value?.settings.find((one) => one.name === name);
  if (setting === undefined) return null;
  return (
    <fieldset class="setting">
      <legend>{label}</legend>
      <div class="row">
        {choices.map(({ label: text, value }) => (
          <button
            key={text}
            type="button"
            aria-pressed={setting.value === value}
            onClick={() => setting.value !== value && void editor.change({ [name]: value } as SettingsChange)}
          >
            {text}
          </button>
        ))}
      </div>
      {setting.source === 'override' && <SettingSource editor={editor} setting={setting} />}
    </fieldset>
  );
}

const intakes: readonly Choice[] = [
  { label: 'Open', value: null },
  { label: 'Drain', value: 'draining' },
  { label: 'Pause', value: 'paused' },
];

/** Drain takes no new chats and finishes what is queued; pause begins no jobs. */
export function IntakeControl({ editor }: { editor: PoolSettingsEditor }) {
  return <ChoiceControl editor={editor} name="intake" label="Intake" choices={intakes} />;
}

const breakers: readonly Choice[] = [
  { label: 'Automatic', value: null },
  { label: 'Hold open', value: 'open' },
  { label: 'Hold closed', value: 'closed' },
];

export function BreakerControl({ editor }: { editor: PoolSettingsEditor }) {
  return <ChoiceControl editor={editor} name="breaker" label="Breaker" choices={breakers} />;
}
