import { useEffect, useRef, useState } from 'preact/hooks';
import { ErrorNotice } from '../parts/field.tsx';
import { signIn } from '../session/sign-in.ts';

/** The form for operators. The fragment stays, so that who signs in comes to where he wanted to be. */
export function SignInView() {
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const name = useRef<HTMLInputElement>(null);
  const secret = useRef<HTMLInputElement>(null);
  useEffect(() => {
    document.title = 'Sign in · Quillgate console';
    name.current?.focus();
  }, []);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      await signIn(name.current?.value ?? '', secret.current?.value ?? '');
    } catch (failure) {
      setError(failure);
      setBusy(false);
      secret.current?.select();
    }
  };
  return (
    <main class="narrow" id="main">
      <h1>Quillgate console</h1>
      <form class="stacked" onSubmit={(event) => void submit(event)}>
        <label for="name">Name</label>
        <input
          id="name"
          ref={name}
          autocomplete="username"
          autocapitalize="none"
          spellcheck={false}
          required
        />
        <label for="secret">Password</label>
        <input id="secret" ref={secret} type="password" autocomplete="current-password" required />
        <button type="submit" class="primary" disabled={isBusy}>
          Sign in
        </button>
        <ErrorNotice error={error} />
      </form>
      <p class="soft">
        For users with the role <code>admin</code>. <code>npm start</code> prints a first one;{' '}
        <code>bin/quillgate users add NAME --role admin</code> adds another.
      </p>
    </main>
  );
}
