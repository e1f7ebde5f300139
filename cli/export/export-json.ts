import { existsSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { StartupError } from '../../shared/runtime/program.js';
import { printable } from '../output/table.js';
import { type Export, written } from './export-folder.js';

/**
 * Writes every post into one JSON array, which is moved into place once it is complete. Throws `StartupError` when the
 * file cannot be written.
 */
export async function exportToJson(to: Export): Promise<void> {
  const { path, force } = to;
  if (!force && existsSync(path))
    throw new StartupError(`${printable(path)} exists already; --force writes over it.`);
  const unfinished = `${path}.${process.pid}.tmp`;
  const file = await written(path, open(unfinished, 'wx'));
  try {
    await writeArray(to, (text) => written(path, file.appendFile(text)));
    await file.close();
    await written(path, rename(unfinished, path));
  } catch (error) {
    await file.close();
    await rm(unfinished, { force: true });
    throw error;
  }
}

async function writeArray({ transfer, onPost }: Export, write: (text: string) => Promise<void>) {
  let before = '[\n';
  for await (const page of transfer.pages()) {
    for (const { post } of page) {
      // Split only at the line ends of the JSON: a content can have other characters that end lines.
      await write(`${before}  ${JSON.stringify(post, null, 2).split('\n').join('\n  ')}`);
      before = ',\n';
      onPost();
    }
  }
  await write(before === ',\n' ? '\n]\n' : '[]\n');
}
