import { useState } from 'preact/hooks';
import type { ProviderId } from '../../shared/contracts/contract.ts';
import type { PoolJob, PoolJobState } from '../../shared/contracts/fleet-contract.ts';
import { call } from '../api.ts';
import { ConfirmButton } from '../parts/confirm-button.tsx';
import { SelectField } from '../parts/field.tsx';
import { formatTime } from '../parts/format.ts';
import { addressOf, type PagedList, PagedTable, usePagedList } from '../parts/paged-table.tsx';

const states: readonly PoolJobState[] = ['active', 'waiting', 'delayed', 'failed', 'completed'];

/** The jobs of a provider's queue, as they were when they were read, page by page. */
export function JobTable({ provider }: { provider: ProviderId }) {
  const [state, setState] = useState<PoolJobState>('active');
  const path = `/admin/pools/${provider}/jobs`;
  const list = usePagedList<PoolJob>(
    (offset) => addressOf(path, { state, offset, limit: '20' }),
    [path, state],
  );
  return (
    <>
      <p class="row">
        <SelectField
          label="State"
          value={state}
          options={states.map((one) => [one, one])}
          onChange={({ currentTarget }) => setState(currentTarget.value as PoolJobState)}
        />
        <button type="button" onClick={() => void list.load()}>
          Read again
        </button>
      </p>
      <PagedTable
        list={list}
        label="Table of jobs"
        titles={['Id', 'State', 'Added', 'Started', 'Ended', ['Attempts', 'number'], 'Chat']}
        row={(job) => (
          <tr key={job.id}>
            <td>
              <code class="id">{job.id}</code>
            </td>
            <td>{job.state}</td>
            {[job.addedAt, job.startedAt, job.endedAt].map((at, column) => (
              <td key={column}>{at ? <time dateTime={at}>{formatTime(at)}</time> : '–'}</td>
            ))}
            <td class="number">{job.attempts}</td>
            <td>
              {job.endedAt === null && (
                <ConfirmButton
                  label="Cancel chat"
                  of={job.id}
                  question="Cancel this chat? Its user gets no answer."
                  onConfirm={() => cancel(job.id, list)}
                />
              )}
            </td>
          </tr>
        )}
        empty="The queue has no such job."
        more="More jobs"
      />
    </>
  );
}

/** The id of the chat is a UUID; the number of the attempt follows it from the second one on. */
async function cancel(jobId: string, list: PagedList<PoolJob>): Promise<void> {
  try {
    await call(`/admin/chat/${jobId.slice(0, 36)}`, { method: 'DELETE' });
    await list.load();
  } catch (error) {
    list.error.value = error;
  }
}
