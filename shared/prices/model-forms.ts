const arnHead = /^arn:aws[\w-]*:bedrock:[^:]*:[^:]*:(?:inference-profile|foundation-model)\//;
/** Bedrock's groups of regions cost what a region does. `global.` costs less, so it belongs to the id. */
const region = /^(?:us|us-gov|eu|apac|au|ca|in|jp)\./;
/** Bedrock's newer models do not name their first version. */
const firstVersion = /(?:-v1)?:0$|-v1$/;
const snapshot = /(?:[-@]20\d{6}|-20\d\d-\d\d-\d\d|-latest)$/;

/** The ids that a model's name may stand for, the closest first: the name, and what is left of it without these. */
export function formsOf(model: string): string[] {
  const name = model.replace(arnHead, '');
  return [name, name.replace(region, '')].flatMap((form) => {
    const unversioned = form.replace(firstVersion, '');
    return [form, unversioned, unversioned.replace(snapshot, '')];
  });
}
