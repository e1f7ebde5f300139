import { useEffect, useRef } from 'preact/hooks';
import { CopyButton } from '../parts/copy-button.tsx';

/** Something that the server has told once and nobody can look up again. */
export interface Told {
  /** Such as `The secret of ann`. */
  readonly what: string;
  readonly secret: string;
}

/** Shows a secret until it is put away. */
export function SecretNotice({ told, onDone }: { told: Told; onDone(): void }) {
  const notice = useRef<HTMLElement>(null);
  useEffect(() => notice.current?.focus(), [told]);
  return (
    <section class="notice" aria-label={told.what} tabIndex={-1} ref={notice}>
      <p>
        <strong>{told.what}</strong>, which is not shown again:
      </p>
      <pre>
        <code>{told.secret}</code>
      </pre>
      <div class="row">
        <CopyButton text={told.secret} />
        <button type="button" onClick={onDone}>
          Done
        </button>
      </div>
    </section>
  );
}
