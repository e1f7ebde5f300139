import { render } from 'preact';
import { App } from './app.tsx';
import { startClock } from './parts/connection.tsx';
import { followHash } from './router.ts';
import { restoreSession } from './session/sign-in.ts';

const root = document.getElementById('console');
if (root) {
  followHash();
  startClock();
  render(<App />, root);
  void restoreSession();
}
