import { createHash } from 'node:crypto';

/** What a model has thought, as an item of Responses has it. */
interface Reasoning {
  readonly summary: readonly { readonly text: string }[];
  readonly encrypted_content?: string | null | undefined;
}

/** The encrypted content of an item of reasoning: only this model takes it back, and only beside the same summary. */
export function seal({ summary }: Reasoning, { model, name }: { model: string; name: string }): string {
  const texts = summary.map(({ text }) => text);
  const digest = createHash('sha256')
    .update(JSON.stringify([model, name, texts]))
    .digest('hex');
  return Buffer.from(`simulated ${name} ${digest}`).toString('base64');
}

/** Whether an item of reasoning is one that the model has given. */
export function isSealed(item: Reasoning, model: string): boolean {
  const sent = item.encrypted_content ?? '';
  const [, name = ''] = Buffer.from(sent, 'base64').toString().split(' ');
  return sent === seal(item, { model, name });
}
