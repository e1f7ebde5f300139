import type { PoolSetting } from '../../shared/contracts/fleet-contract.ts';
import { labelOf } from './setting-fields.ts';
import type { PoolSettingsEditor, SettingsChange } from './settings.ts';

const sources = { default: 'by default', environment: 'from the environment', override: 'set by operators' };

/** Where a value comes from, and the way back from what operators have set. */
export function SettingSource({ editor, setting }: { editor: PoolSettingsEditor; setting: PoolSetting }) {
  const { name, source } = setting;
  const reset: SettingsChange = { [name]: null };
  return (
    <span class="soft">
      {sources[source]}
      {source === 'override' && (
        <>
          {' '}
          <button type="button" class="plain" onClick={() => void editor.change(reset)}>
            Reset<span class="hidden"> {labelOf(name)}</span>
          </button>
        </>
      )}
    </span>
  );
}
