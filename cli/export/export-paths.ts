import { posix, win32 } from 'node:path';

/** Assigns the paths of an export, relative and with `/`, each only once. */
export interface ExportPaths {
  /** Claims the path; false unless it is inside the folder and conflicts with no other. */
  claim(path: string): boolean;
  /** Claims a unique path for a post. */
  claimFor(post: { slug: string; id: string }): string;
  /** Whether the path is claimed, or one that is the same to some file systems. */
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

/** Equal for names that are the same to some file systems; upper case first, because to them `ß` and `SS` are equal. */
const fold = (path: string): string => path.normalize('NFC').toUpperCase().toLowerCase().normalize('NFC');

function foldersAbove(path: string): string[] {
  const names = path.split('/').slice(0, -1);
  return names.map((_, index) => names.slice(0, index + 1).join('/'));
}

/** Checked, because paths come from the database, which others may write to. */
function staysInside(path: string): boolean {
  const names = path.split('/');
  if (names.some((name) => ['', '.', '..'].includes(name)) || path.includes('\0')) return false;
  if (!path.endsWith('.md') || posix.isAbsolute(path)) return false;
  return process.platform !== 'win32' || (!/[\\:]/.test(path) && !win32.isAbsolute(path));
}
