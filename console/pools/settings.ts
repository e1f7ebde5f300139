import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { ProviderId } from '../../shared/contracts/contract.ts';
import type {
  FleetProvider,
  PoolSetting,
  PoolSettings,
  PoolSettingsInput,
} from '../../shared/contracts/fleet-contract.ts';
import { ApiError, call } from '../api.ts';

/** The changes that an operator wants; null takes back the operators' value. */
export type SettingsChange = { [Name in keyof PoolSettingsInput]?: PoolSettingsInput[Name] | null };

/** A change that was not made. It is kept until it is made or discarded. */
interface FailedChange {
  readonly change: SettingsChange;
  readonly error: unknown;
  readonly isConflict: boolean;
}

/** The settings of a provider's pools, and the pending changes, which are sent one after the other. */
export class PoolSettingsEditor {
  readonly provider: ProviderId;
  /** The settings in the server's last answer; undefined before the first. */
  readonly known = signal<PoolSettings | undefined>(undefined);
  readonly isSaving = signal(false);
  readonly failed = signal<FailedChange | undefined>(undefined);
  readonly loadError = signal<unknown>(undefined);
  /** The version on which a change is based: from the first key on, not from when it is sent. */
  #base: PoolSettings | undefined;
  #next: SettingsChange | undefined;

  constructor(provider: ProviderId) {
    this.provider = provider;
  }

  get #address(): string {
    return `/admin/pools/${this.provider}`;
  }

  /** A setting as it is in force; undefined before the server has answered. */
  find(name: string): PoolSetting | undefined {
    return this.known.value?.settings.find((setting) => setting.name === name);
  }

  async load(): Promise<void> {
    try {
      const { body } = await call<PoolSettings>(this.#address);
      // An answer may come after that of a later change.
      if (body.version >= (this.known.value?.version ?? 0)) this.known.value = body;
      this.loadError.value = undefined;
    } catch (error) {
      this.loadError.value = error;
    }
  }

  /** Remembers the base of the change that begins now. */
  begin(): void {
    this.#base ??= this.known.value;
  }

  cancel(): void {
    this.#base = undefined;
  }

  /** Makes the change; what goes wrong is in `failed`. */
  async change(change: SettingsChange): Promise<void> {
    this.#next = { ...this.#next, ...change };
    if (this.isSaving.value) return;
    this.isSaving.value = true;
    while (this.#next !== undefined) {
      const wanted = this.#next;
      this.#next = undefined;
      await this.#save(wanted);
    }
    this.isSaving.value = false;
  }

  async retry(): Promise<void> {
    const { change } = this.failed.value ?? {};
    if (change === undefined) return;
    this.discard();
    await this.change(change);
  }

  discard(): void {
    this.failed.value = undefined;
  }

  async #save(change: SettingsChange): Promise<void> {
    const base = this.#base ?? this.known.value;
    this.#base = undefined;
    if (base === undefined) return;
    try {
      const { body } = await call<PoolSettings>(this.#address, {
        method: 'PUT',
        json: toOverrides(base, change),
        headers: { 'If-Match': `"${base.version}"` },
      });
      this.known.value = body;
      this.#rebase(base, body);
      this.#forget(change);
    } catch (error) {
      const isConflict = error instanceof ApiError && error.code === 'precondition_failed';
      // Who was first, and what is in force now; what was to follow is kept with what has failed.
      if (isConflict) await this.load();
      this.failed.value = {
        change: { ...this.failed.value?.change, ...change, ...this.#next },
        error,
        isConflict,
      };
      this.#next = undefined;
    }
  }

  /** A change that began during the operator's own change is based on that. */
  #rebase(from: PoolSettings, to: PoolSettings): void {
    if (this.#base?.version === from.version) this.#base = to;
  }

  /** Drops the failed changes of settings that differ by now, and keeps the others. */
  #forget(made: SettingsChange): void {
    const { failed } = this;
    if (failed.value === undefined) return;
    const left = Object.entries(failed.value.change).filter(([name]) => !(name in made));
    failed.value = left.length === 0 ? undefined : { ...failed.value, change: Object.fromEntries(left) };
  }
}

/** The whole of what shall replace the environment, as `PUT` wants it. */
function toOverrides(base: PoolSettings, change: SettingsChange): object {
  const set = base.settings.filter(({ source }) => source === 'override');
  const all = { ...Object.fromEntries(set.map(({ name, value }) => [name, value])), ...change };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null && value !== undefined));
}

const editors = new Map<ProviderId, PoolSettingsEditor>();

/** The one of each provider, so that a change that failed outlives the view. */
export function editorOf(provider: ProviderId): PoolSettingsEditor {
  const editor = editors.get(provider) ?? new PoolSettingsEditor(provider);
  editors.set(provider, editor);
  return editor;
}

/** The suggestion changes without a change of the settings. */
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
