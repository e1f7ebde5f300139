import { labelOf } from './setting-fields.ts';
import { SettingSource } from './setting-source.tsx';
import type { PoolSettingsEditor } from './settings.ts';

/** The labels of the buttons and their values; null is what the pool does by itself. */
const choices = {
  // Drain takes no new chats and finishes what is queued; pause begins no jobs.
  intake: { Open: null, Drain: 'draining', Pause: 'paused' },
  breaker: { Automatic: null, 'Hold open': 'open', 'Hold closed': 'closed' },
} as const;

interface ChoiceProps {
  editor: PoolSettingsEditor;
  name: keyof typeof choices;
  /** The effect of the value and of the others. */
  note?: (value: unknown) => string;
}

/** Buttons of which one is pressed. */
export function ChoiceControl({ editor, name, note }: ChoiceProps) {
  const setting = editor.find(name);
  if (setting === undefined) return null;
  return (
    <fieldset class="field">
      <legend>{labelOf(name)}</legend>
      <div class="row">
        {Object.entries(choices[name]).map(([label, value]) => (
          <button
            key={label}
            type="button"
            aria-pressed={setting.value === value}
            onClick={() => setting.value !== value && void editor.change({ [name]: value })}
          >
            {label}
          </button>
        ))}
      </div>
      {note && <p class="soft">{note(setting.value)}</p>}
      {setting.source === 'override' && <SettingSource editor={editor} setting={setting} />}
    </fieldset>
  );
}
