/** A call as the simulator's control path tells of it; times are in ISO 8601. */
export interface SimulatedCall {
  model: string;
  receivedAt: string;
  closedAt: string | null;
}

interface Stats {
  openSockets: number;
  providers: Record<string, { inFlight: number }>;
}

/** A simulator in a container, seen through its control path. */
export interface SimulatorContainer {
  /** Every call, oldest first. */
  calls(): Promise<SimulatedCall[]>;
  /** Calls that have begun and not ended. */
  inFlight(): Promise<number>;
  /** Connections to it, but for the one that asks. */
  openSockets(): Promise<number>;
}

/** Looks at the simulator at this address. */
export function watchSimulator(url: string): SimulatorContainer {
  const get = async (path: string): Promise<unknown> => {
    const answer = await fetch(`${url}/__simulator/${path}`, { headers: { Connection: 'close' } });
    return answer.json();
  };
  const stats = async () => (await get('calls/stats')) as Stats;
  return {
    calls: async () => (await get('calls')) as SimulatedCall[],
    inFlight: async () =>
      Object.values((await stats()).providers).reduce((sum, { inFlight }) => sum + inFlight, 0),
    openSockets: async () => (await stats()).openSockets - 1,
  };
}
