import { useEffect } from 'preact/hooks';
import type { FleetProvider } from '../../shared/fleet-contract.ts';
import { editorOf, type PoolSettingsEditor } from './settings.ts';

/** The suggestion changes although nobody changes the settings. */
const reloadMs = 15_000;

/** The settings of a provider, read again when a worker has newer ones than those that are known here. */
export function useSettings({ provider, workers }: FleetProvider): PoolSettingsEditor {
  const editor = editorOf(provider);
  const newest = Math.max(0, ...workers.map(({ settingsVersion }) => settingsVersion));
  useEffect(() => {
    if (newest >= (editor.known.peek()?.version ?? -1)) void editor.load();
    const timer = setInterval(() => void editor.load(), reloadMs);
    return () => clearInterval(timer);
  }, [editor, newest]);
  return editor;
}
