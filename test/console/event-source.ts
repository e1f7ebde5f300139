import { vi } from 'vitest';

/** The page's event stream, as far as the page uses it. */
export class StubEventSource extends EventTarget {
  isClosed = false;
  close(): void {
    this.isClosed = true;
  }
  tell(event: string, data: object): void {
    this.dispatchEvent(new MessageEvent(event, { data: JSON.stringify(data) }));
  }
}

/** Gives the page such streams until `vi.unstubAllGlobals`, and returns those that it opens. */
export function stubEventSources(): StubEventSource[] {
  const sources: StubEventSource[] = [];
  vi.stubGlobal('EventSource', function open() {
    const source = new StubEventSource();
    sources.push(source);
    return source;
  });
  return sources;
}
