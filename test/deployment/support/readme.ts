import { readFileSync } from 'node:fs';

/** The commands of a section of the README, as printed; lines that end with a backslash are one command. */
export function commandsOf(section: string): string[] {
  const readme = readFileSync('README.md', 'utf8');
  const text = readme.split(`\n## ${section}\n`)[1]?.split('\n## ')[0];
  if (text === undefined) throw new Error(`The README has no section ${section}.`);
  return text
    .split('\n')
    .filter((line) => line.startsWith('    '))
    .map((line) => line.slice(4))
    .join('\n')
    .replaceAll('\\\n', ' ')
    .split('\n');
}
