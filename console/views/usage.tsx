import type { Usage, UsageRow } from '../../shared/contracts/ledger.ts';
import { useAnswer } from '../parts/answer.ts';
import { CopyButton } from '../parts/confirm-button.tsx';
import { ErrorNotice, Facts, type OptionTexts, SelectField, TextField } from '../parts/field.tsx';
import { formatCost, formatNumber } from '../parts/format.ts';
import { addressOf, showFiltered, Table } from '../parts/paged-table.tsx';
import { nameOf } from '../pools/describe.ts';
import type { ViewProps } from '../router.ts';

const rereadMs = 15_000;
const dayMs = 86_400_000;
const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/** By what calls are summed: the name of it in a row, and its title. */
const groupings = ['model', 'user', 'token', 'provider', 'api', 'session', 'day'] as const;
type Grouping = (typeof groupings)[number];
const titleOf = (name: Grouping) =>
  name === 'api' ? 'API' : name.replace(/^./, (first) => first.toUpperCase());
const choices: OptionTexts = groupings.map((name) => [name, titleOf(name)]);

/** What was spent, by day and as the address groups it: `#/usage?from=2026-12-01&to=2026-12-31&by=user&and=model`. */
export function UsageView({ query }: ViewProps) {
  const [first, last] = [dayOf(Date.now() - 29 * dayMs), dayOf(Date.now())];
  const { from = first, to = last, by = 'model', and = '' } = Object.fromEntries(query);
  const names = [...new Set([by, and])].filter((name) => name !== '') as Grouping[];
  const asked = { from, to, by: names.join(',') };
  const { value: days } = useAnswer<Usage>(addressOf('/admin/usage', { ...asked, by: 'day' }), rereadMs);
  const { value: usage, error } = useAnswer<Usage>(addressOf('/admin/usage', asked), rereadMs);
  return (
    <>
      <h1>Usage</h1>
      <form key={`${query}`} class="row" onSubmit={(event) => showFiltered(event, 'usage')}>
        <TextField label="From, UTC" type="date" name="from" required defaultValue={from} />
        <TextField label="To, UTC" type="date" name="to" required defaultValue={to} />
        <SelectField label="By" name="by" options={choices} selected={by} />
        <SelectField label="And by" name="and" options={[['', 'nothing else'], ...choices]} selected={and} />
        <button type="submit">Show</button>
        <a href={addressOf('/admin/usage', { ...asked, format: 'csv' })} download="usage.csv">
          CSV
        </a>
      </form>
      <ErrorNotice error={usage ? undefined : error} />
      {days && <Days usage={days} />}
      {usage?.rows.length === 0 && (
        <p class="soft">
          {usage.since === null
            ? 'No provider has been called yet. Send a request in the playground.'
            : `No provider was called on these days. Calls are counted since ${usage.since.slice(0, 10)}.`}
        </p>
      )}
      {usage && usage.rows.length > 0 && <UsageTable usage={usage} names={names} />}
      {usage && usage.unknownModels.length > 0 && <UnknownModels models={usage.unknownModels} />}
    </>
  );
}

/** The sums, and a bar for each day. */
function Days({ usage: { from, to, rows, total } }: { usage: Usage }) {
  const known = new Map(rows.map((row) => [row.day, row]));
  const most = Math.max(...rows.map(({ cost }) => cost ?? 0), 1e-9);
  const today = known.get(dayOf(Date.now()));
  return (
    <>
      <Facts
        facts={[
          ['Sum', <strong>{formatCost(total)}</strong>],
          ['Today', today && formatCost(today)],
          ['Calls', formatNumber(total.calls)],
          ['Failed', formatNumber(total.failed)],
          ['Of unknown cost', formatNumber(total.unpriced)],
          ['Estimated', formatNumber(total.estimated)],
          ['Lost runs', formatNumber(total.lost)],
        ]}
      />
      <ol class="days" aria-label="Cost of each day">
        {daysBetween(from, to).map((day) => {
          const row = known.get(day);
          const text = `${day}: ${row ? formatCost(row) : 'no calls'}`;
          const height = (100 * (row?.cost ?? 0)) / most;
          return (
            <li key={day} title={text}>
              <svg class="bar" viewBox="0 0 100 100" preserveAspectRatio="none" role="img" aria-label={text}>
                <rect class="called" y={(100 - height).toFixed(1)} width="100" height={height.toFixed(1)} />
              </svg>
              <span aria-hidden="true">{day.slice(8)}</span>
            </li>
          );
        })}
      </ol>
    </>
  );
}

/** Every UTC day from one to another. */
export function daysBetween(from: string, to: string): string[] {
  const count = Math.round((Date.parse(to) - Date.parse(from)) / dayMs) + 1;
  return Array.from({ length: Math.max(0, count) }, (_, n) => dayOf(Date.parse(from) + n * dayMs));
}

const counts = ['Calls', 'Failed', 'Tokens in', 'Of it cached', 'Tokens out', 'Unknown cost', 'Cost'];

function UsageTable({ usage, names }: { usage: Usage; names: readonly Grouping[] }) {
  const titles = [...names.map(titleOf), ...counts.map((title) => [title, 'number'] as const)];
  return (
    <Table label="Table of usage" titles={titles}>
      {usage.rows.map((row, n) => (
        <tr key={n}>
          {names.map((name) => (
            <td key={name}>
              <a href={`#${addressOf('/requests', requestsOf(row, usage))}`}>{describeName(row, name)}</a>
            </td>
          ))}
          {[row.calls, row.failed, row.tokens.input, row.tokens.cached, row.tokens.output, row.unpriced].map(
            (count, column) => (
              <td key={column} class="number">
                {formatNumber(count)}
              </td>
            ),
          )}
          <td class="number">{formatCost(row)}</td>
        </tr>
      ))}
    </Table>
  );
}

function describeName(row: UsageRow, name: Grouping): string {
  const value = row[name] ?? '';
  if (name === 'provider') return nameOf(value);
  return (
    value || (name === 'token' ? 'names with secrets' : name === 'model' ? 'calls without tokens' : 'none')
  );
}

/** The filter of the requests that a row counts; the form of requests has times, not days. */
export function requestsOf(row: UsageRow, { from, to }: { from: string; to: string }) {
  const { day, provider, model, user, tokenId: token, api, session } = row;
  const end = dayOf(Date.parse(day ?? to) + dayMs);
  return {
    provider,
    model,
    user,
    token,
    api,
    session,
    from: `${day ?? from}T00:00:00`,
    to: `${end}T00:00:00`,
  };
}

/** Models without a known price, with what gives them one. */
function UnknownModels({ models }: { models: Usage['unknownModels'] }) {
  const lines = models.map(({ line }) => line).join('\n');
  return (
    <section aria-labelledby="unknown">
      <h2 id="unknown">Models without a known price</h2>
      <p>
        Complete these lines, and put them into the file that <code>PRICES_FILE</code> names.
      </p>
      <pre>
        <code>{lines}</code>
      </pre>
      <CopyButton text={lines} label="Copy the lines" />
    </section>
  );
}
