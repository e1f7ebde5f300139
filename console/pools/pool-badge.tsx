import type { FleetProvider } from '../../shared/contracts/fleet-contract.ts';
import { type Described, describeProvider } from './describe.ts';
import type { PoolSettingsEditor } from './settings.ts';

/** A word with a dot in its colour. */
export function Badge({ text, tone }: Described) {
  return (
    <span class="badge">
      <span class={`dot ${tone}`} aria-hidden="true" />
      {text}
    </span>
  );
}

/** State of a provider, and whether it is the real one; changes are read out. */
export function PoolBadges({ pool, editor }: { pool: FleetProvider; editor: PoolSettingsEditor }) {
  return (
    <span class="row" role="status">
      <Badge {...describeProvider(pool, editor.find('intake')?.value)} />
      {pool.kind !== 'unknown' && (
        <Badge
          text={pool.kind}
          tone={pool.kind === 'real' ? 'good' : pool.kind === 'mixed' ? 'bad' : 'soft'}
        />
      )}
    </span>
  );
}
