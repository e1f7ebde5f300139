/**
 * A part of a request that a provider's 400 refuses. A call can do without a hint and without the signatures of earlier
 * replies; the effort, refused beside tools, has to be `none`; and the choice of a tool is the caller's to mend.
 */
export type Refusal = 'hint' | 'effort' | 'signatures' | 'toolChoice';

/**
 * Reads it from OpenAI's name of the parameter, or from the text, where the others say it; texts are compared, and kept
 * nowhere. Undefined for a refusal of anything else. The sources are in docs/decisions/0044-parts-and-marks.md.
 */
export function readRefusal(param = '', text = ''): Refusal | undefined {
  const said = text.slice(0, maxCompared);
  if (noEffort.test(said)) return 'effort';
  if (param === 'tool_choice') return 'toolChoice';
  if (param !== '') return !param.startsWith('tools') && hintName.test(param) ? 'hint' : undefined;
  if (signatures.test(said)) return 'signatures';
  // The schema of a tool may have properties of these names.
  if (/schema/i.test(said)) return undefined;
  if (hintName.test(said) && refused.test(said)) return 'hint';
  return toolChoice.test(said) ? 'toolChoice' : undefined;
}

/** All of these texts are shorter. */
const maxCompared = 2000;

const hintName =
  /\b(temperature|top_?p|seed|((frequency|presence)_?)?penalty|(reasoning_?)?effort|thinking[ _]?level|verbosity|(disable_)?parallel_tool_(calls|use))\b/i;

const refused =
  /\b(deprecated|unsupported|unrecognized|unknown|not (supported|enabled|allowed|permitted)|not support|doesn't support|cannot (both )?be|may only be|must be)\b/i;

/** OpenAI's newer models refuse tools at any other effort, also at the one that they have by default. */
const noEffort = /\bset reasoning_effort to 'none'/;

const signatures =
  /\binvalid `?(signature|data)`? in `?(redacted_)?thinking`? block|\breasoningContent\b|`thinking` or `redacted_thinking` blocks .* cannot be modified|\b(invalid|corrupted) thought[ _]signature\b|\bthought[ _]signature is not valid\b/i;

const toolChoice = /\b(tool[ _]?choice|function[ _]calling[ _](config|mode)|allowed_function_names)\b/i;
