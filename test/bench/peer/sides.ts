/** What is measured in turns: our API, the other gateway, and the simulator with nothing before it. */
export const sides = ['quillgate', 'portkey', 'simulator'] as const;

export type Side = (typeof sides)[number];
