// Lists the modules that a program loads, one a line, in the file that QUILLGATE_TEST_MODULES names; for `--import`.
import { appendFileSync } from 'node:fs';
import { registerHooks } from 'node:module';

registerHooks({
  load(url, context, nextLoad) {
    appendFileSync(process.env.QUILLGATE_TEST_MODULES, `${url}\n`);
    return nextLoad(url, context);
  },
});
