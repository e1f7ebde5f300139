/** What the name of a model may look like. It becomes part of providers' URLs: no `..`, and nothing that needs escaping. */
export const modelName = /^(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._:/@-]{0,255}$/;

/** What a pattern of such names may look like, in which `*` stands for any characters. */
export const modelPattern = /^[A-Za-z0-9*][A-Za-z0-9._:/@*-]{0,255}$/;
