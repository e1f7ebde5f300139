import { posix, win32 } from 'node:path';

/** Assigns the paths of an export, relative and with `/`, each only once. */
export class ExportPaths {
  readonly #files = new Set<string>();
  readonly #folders = new Set<string>();

  /** Claims the path; false unless it is inside the folder and conflicts with no other. */
  claim(path: string): boolean {
    const folded = fold(path);
    const above = foldersAbove(folded);
    const isTaken = [folded, ...above].some((name) => this.#files.has(name)) || this.#folders.has(folded);
    if (isTaken || !staysInside(path)) return false;
    this.#files.add(folded);
    for (const folder of above) this.#folders.add(folder);
    return true;
  }

  /** Claims a unique path for a post. */
  claimFor({ slug, id }: { slug: string; id: string }): string {
    for (let name = slug; ; name = `${name}-${id}`) if (this.claim(`${name}.md`)) return `${name}.md`;
  }

  /** Whether the path is claimed, or one that is the same to some file systems. */
  isClaimed(path: string): boolean {
    return this.#files.has(fold(path));
  }
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
