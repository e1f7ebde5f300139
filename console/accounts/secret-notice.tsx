import { useEffect, useRef, useState } from 'preact/hooks';
import { CopyButton } from '../parts/copy-button.tsx';
import { ErrorNotice } from '../parts/notice.tsx';

/** A secret that the server has shown once and cannot show again. */
export interface Told {
  /** Such as `The secret of ann`. */
  readonly what: string;
  readonly secret: string;
}

/** Changes the items of a list and reads it again; `outcome` shows a failure, or a new secret. */
export function useChanges(list: { load(): Promise<void> }) {
  const [told, setTold] = useState<Told>();
  const [error, setError] = useState<unknown>();
  const change = async (make: () => Promise<Told | undefined>) => {
    setError(undefined);
    try {
      const secret = await make();
      if (secret) setTold(secret);
      await list.load();
    } catch (failure) {
      setError(failure);
    }
  };
  const outcome = (
    <>
      <ErrorNotice error={error} />
      {told && <SecretNotice told={told} onDone={() => setTold(undefined)} />}
    </>
  );
  return { change, outcome };
}

function SecretNotice({ told, onDone }: { told: Told; onDone(): void }) {
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
