/** What is taken from the worker runtime, which is plain JavaScript. */
declare module '*/concurrency-rule.cjs' {
  /** Time, and idle time of the event loop, by number of renders in progress. */
  export interface Figures {
    timeMs: number[];
    idleMs: number[];
  }
  export interface State extends Figures {
    limit: number;
    lately: Figures;
    waitRatio?: number;
    because?: string;
    heldBy?: string;
  }
  export interface Bounds {
    min: number;
    max: number;
  }
  export function firstState(bounds: Bounds): State;
  export function learn(state: State, fresh: Figures): State;
  export function decide(state: State, bounds: Bounds, holds?: { rise?: string; fall?: string }): State;
  export function measuredShares(state: State): Record<string, number>;
}

declare module '*/wait-ratio.cjs' {
  /** Share of the time that one CPU is busy, with 0 to `most` renders in progress. */
  export function busyShares(ratio: number, most: number): number[];
}
