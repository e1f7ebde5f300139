import type { PoolSettings } from '../../shared/contracts/fleet-contract.ts';
import { ErrorNotice } from '../parts/field.tsx';
import { formatTime } from '../parts/format.ts';
import { fleet } from '../store.ts';
import { reachOf } from './describe.ts';
import { formatSetting, labelOf } from './setting-fields.ts';
import type { PoolSettingsEditor } from './settings.ts';

/** The state of the last change: at the workers, or not made, and then the change that came first. */
export function ChangeState({ editor }: { editor: PoolSettingsEditor }) {
  const known = editor.known.value;
  return (
    <>
      <FailedChange editor={editor} />
      <ErrorNotice error={known ? undefined : editor.loadError.value} />
      <p class="soft reach" role="status">
        {editor.isSaving.value ? 'Saving…' : known && <Reach known={known} />}
      </p>
    </>
  );
}

/** The workers that have the settings, by their own heartbeats. */
function Reach({ known }: { known: PoolSettings }) {
  const { provider, version, changedAt, changedBy, isPending } = known;
  const workers = fleet.value?.providers.find((one) => one.provider === provider)?.workers ?? [];
  const { live, current } = reachOf(workers, version);
  if (version === 0) return <>No changes yet; the environment applies.</>;
  return (
    <>
      Version {version}
      {changedBy && ` by ${changedBy}`}
      {changedAt && `, ${formatTime(changedAt)}`}: at{' '}
      <span class={current < live ? 'warn' : ''}>
        {current} of {live} {live === 1 ? 'worker' : 'workers'}
      </span>
      {isPending && <span class="warn">; not yet in the queue's store</span>}
    </>
  );
}

/** A change that was not made, with the choices. */
export function FailedChange({ editor }: { editor: PoolSettingsEditor }) {
  const failed = editor.failed.value;
  const known = editor.known.value;
  if (failed === undefined || known === undefined) return null;
  const buttons = (
    <p class="row">
      <button type="button" onClick={() => void editor.retry()}>
        {failed.isConflict ? 'Apply mine anyway' : 'Try again'}
      </button>
      <button type="button" onClick={() => editor.discard()}>
        {failed.isConflict ? 'Keep the saved settings' : 'Discard'}
      </button>
    </p>
  );
  if (!failed.isConflict)
    return (
      <>
        <ErrorNotice error={failed.error} />
        {buttons}
      </>
    );
  const { changedBy = 'Someone', changedAt, version } = known;
  return (
    <div class="notice" role="status">
      <p>
        <strong>{changedBy}</strong> saved version {version} before you
        {changedAt && `, ${formatTime(changedAt)}`}. Your change was not applied.
      </p>
      <ul>
        {Object.entries(failed.change).map(([name, wanted]) => (
          <li key={name}>
            {labelOf(name)}: now {formatSetting(name, editor.find(name)?.value)}; you wanted{' '}
            {wanted === null ? 'to reset it' : formatSetting(name, wanted)}
          </li>
        ))}
      </ul>
      {buttons}
    </div>
  );
}
