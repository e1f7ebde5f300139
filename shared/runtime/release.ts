import manifest from '../../package.json' with { type: 'json' };

/** The release of Quillgate that runs; the API's version, which the OpenAPI document has, is another. */
export const release: string = manifest.version;
