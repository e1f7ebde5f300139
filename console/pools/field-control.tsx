import { useId, useState } from 'preact/hooks';
import type { SettingField } from './setting-fields.ts';
import { SettingSource } from './setting-source.tsx';
import type { PoolSettingsEditor, SettingsChange } from './settings.ts';

/** A setting as a line of text, which applies when the field is left or Enter is pressed; Escape takes it back. */
export function FieldControl({ editor, field }: { editor: PoolSettingsEditor; field: SettingField }) {
  const id = useId();
  const [draft, setDraft] = useState<string>();
  const [wrong, setWrong] = useState<string>();
  const setting = editor.find(field.name);
  if (setting === undefined) return null;
  const current = setting.value === null ? '' : field.format(setting.value);
  const forget = () => {
    editor.cancel();
    setDraft(undefined);
    setWrong(undefined);
  };
  const apply = async (text: string) => {
    if (text.trim() === current) return forget();
    try {
      const value = text.trim() === '' ? null : field.parse(text);
      setWrong(undefined);
      await editor.change({ [field.name]: value } as SettingsChange);
      setDraft(undefined);
    } catch (error) {
      setWrong(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <div class="field">
      <label for={id}>{field.label}</label>
      <input
        id={id}
        value={draft ?? current}
        placeholder={field.none}
        inputMode={field.isNumber ? 'numeric' : 'text'}
        aria-describedby={`${id}-hint`}
        aria-invalid={wrong !== undefined}
        spellcheck={false}
        onInput={({ currentTarget }) => {
          editor.begin();
          setDraft(currentTarget.value);
        }}
        onChange={({ currentTarget }) => void apply(currentTarget.value)}
        onKeyDown={({ key }) => key === 'Escape' && forget()}
      />
      <span class="soft" id={`${id}-hint`}>
        {wrong ? <span class="bad">{wrong}</span> : field.hint}
      </span>
      <SettingSource editor={editor} setting={setting} />
    </div>
  );
}
