import manifest from '../../package.json' with { type: 'json' };

/** The release of Quillgate; the version of the API, in the OpenAPI document, is a different one. */
export const release: string = manifest.version;
