import type { FleetProvider } from '../../shared/fleet-contract.ts';
import { formatNumber } from '../parts/format.ts';
import { ChoiceControl } from './choice-control.tsx';
import type { PoolSettingsEditor } from './settings.ts';

/** Opens, drains or pauses a provider's pools, and says what that does to the chats that are there now. */
export function IntakeControl({ pool, editor }: { pool: FleetProvider; editor: PoolSettingsEditor }) {
  const intake = editor.find('intake');
  if (intake === undefined) return null;
  return (
    <div>
      <ChoiceControl editor={editor} name="intake" />
      <p class="soft">{effectOf(intake.value, pool)}</p>
    </div>
  );
}

function effectOf(intake: unknown, { inFlight, queue }: FleetProvider): string {
  const waiting = queue ? formatNumber(queue.waiting) : 'all';
  const running = formatNumber(inFlight);
  if (intake === 'paused') return `${waiting} waiting chats begin no calls. Open takes this back at once.`;
  if (intake === 'draining')
    return `New chats are refused; ${waiting} waiting and ${running} in flight end. Open takes this back at once.`;
  return `Drain refuses new chats. Pause keeps ${waiting} waiting chats from their calls; ${running} in flight go on.`;
}
