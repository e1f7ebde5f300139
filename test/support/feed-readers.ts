import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import addFormats from 'ajv-formats';
import { RelaxNGValidator, XmlDocument } from 'libxml2-wasm';
import { expect } from 'vitest';

const schemaAt = (name: string) => readFileSync(new URL(`./schemas/${name}`, import.meta.url));

const ajv = new Ajv({ allErrors: true });
addFormats.default(ajv);
const isJsonFeed = ajv.compile(JSON.parse(schemaAt('json-feed.json').toString()));

/** Parses a JSON Feed; fails the test when it is not a valid one. */
export function readJsonFeed(text: string) {
  const feed = JSON.parse(text);
  isJsonFeed(feed);
  expect(isJsonFeed.errors).toBeNull();
  return feed;
}

/** Parses an Atom feed into the texts a test asks for; fails the test when it is not a valid one. */
export function readAtom(xml: string) {
  using document = XmlDocument.fromString(xml);
  validateAtom(document);
  const find = (path: string) =>
    document.find(path, { a: 'http://www.w3.org/2005/Atom' }).map(({ content }) => content.trim());
  // The rules that the RFC's grammar has in Schematron: every entry has an author, and a link or content.
  expect(find('//a:entry[not(a:author)]')).toEqual([]);
  expect(find('//a:entry[not(a:link[@rel="alternate"]) and not(a:content)]')).toEqual([]);
  return {
    ids: find('//a:entry/a:id'),
    titles: find('//a:entry/a:title'),
    authors: find('//a:entry/a:author/a:name'),
    contents: find('//a:entry/a:content'),
    categories: find('//a:category/@term'),
    links: find('//a:entry/a:link/@href'),
    feed: {
      id: find('/a:feed/a:id'),
      title: find('/a:feed/a:title'),
      updated: find('/a:feed/a:updated'),
      self: find('/a:feed/a:link[@rel="self"]/@href'),
      alternate: find('/a:feed/a:link[@rel="alternate"]/@href'),
    },
  };
}

function validateAtom(document: XmlDocument): void {
  using grammar = XmlDocument.fromBuffer(schemaAt('atom.rng'));
  using validator = RelaxNGValidator.fromDoc(grammar);
  validator.validate(document);
}
