import { posix, win32 } from 'node:path';

/** Hands out the paths of an export, relative and with `/`, each once. */
export interface ExportPaths {
  /** Whether the path can be had: it stays inside the folder and is in nobody's way. */
  claim(path: string): boolean;
  /** A path of its own for a post. */
  claimFor(post: { slug: string; id: string }): string;
  /** Whether somebody has the path, or one that some file systems take for it. */
  isClaimed(path: string): boolean;
}

export function createExportPaths(): ExportPaths {
  const files = new Set<string>();
  const folders = new Set<string>();

  const claim = (path: string): boolean => {
    const folded = fold(path);
    const above = foldersAbove(folded);
    const isFree = !files.has(folded) && !folders.has(folded) && !above.some((folder) => files.has(folder));
    if (!isFree || !staysInside(path)) return false;
    files.add(folded);
    for (const folder of above) folders.add(folder);
    return true;
  };
  const claimFor = ({ slug, id }: { slug: string; id: string }): string => {
    for (let name = slug; ; name = `${name}-${id}`) if (claim(`${name}.md`)) return `${name}.md`;
  };
  return { claim, claimFor, isClaimed: (path) => files.has(fold(path)) };
}

/** The same for names that some file systems take for one; upper case first, because there `ß` and `SS` are the same. */
const fold = (path: string): string => path.normalize('NFC').toUpperCase().toLowerCase().normalize('NFC');

function foldersAbove(path: string): string[] {
  const names = path.split('/').slice(0, -1);
  return names.map((_, index) => names.slice(0, index + 1).join('/'));
}

/** Paths come from the database, which others may write to. */
function staysInside(path: string): boolean {
  const names = path.split('/');
  if (names.some((name) => ['', '.', '..'].includes(name)) || path.includes('\0')) return false;
  if (!path.endsWith('.md') || posix.isAbsolute(path)) return false;
  return process.platform !== 'win32' || (!/[\\:]/.test(path) && !win32.isAbsolute(path));
}
