/** The scenarios: what the clients send, and what is done to the workers meanwhile. */
import { setTimeout } from 'node:timers/promises';
import type { Group, PlannedRequest } from '../lib/load.ts';
import { createRandom, pick, type Random } from '../lib/random.ts';
import type { System } from '../systems/system.ts';

/** As in the article. */
export const WORKERS = 15;
export const BODY_BYTES = 100_000;
export const RENDER_MS = 50;
export const REQUESTS = 10_000;
const CLIENTS = 20;
/** More than anybody can do in the time. */
export const COUNT_MAX = 100_000;
const SECONDS = 18;
const RUNAWAYS = 5;
const RUNAWAY_EVERY_MS = 3_200;
const RUNAWAY_FIRST_MS = 1_500;

export interface Scenario {
  key: string;
  title: string;
  /** Expected time, for the estimate. */
  seconds: number;
  groups(system: System): Group[];
  /** Runs beside the clients; it is given their random numbers and told when to leave off. */
  act?(system: System, during: { random: Random; over: AbortSignal }): Promise<void>;
}

/** The group that is counted. */
export const CLIENTS_GROUP = 'client';
const RUNAWAY_GROUP = 'runaway';
export const SLOW_GROUP = 'slow';

const RENDER: PlannedRequest = { path: `/?id={id}&steps=b${RENDER_MS}` };

/** As many requests as there are workers, so that each goes to a random one where there are several targets. */
function spread(system: System, request: PlannedRequest, random = createRandom(1)): PlannedRequest[] {
  return Array.from({ length: 1_000 }, () => ({ ...request, target: pick(random, system.targets.length) }));
}

/** @param request what all clients ask for */
export function clients(
  system: System,
  concurrency = CLIENTS,
  limits = { count: COUNT_MAX, seconds: SECONDS },
  request = RENDER,
): Group {
  const deal = system.name === 'direct';
  return { name: CLIENTS_GROUP, concurrency, ...limits, deal, requests: spread(system, request) };
}

/** Resolves after the time, or at once when it is over. */
function pause(ms: number, over: AbortSignal): Promise<void> {
  return setTimeout(ms, undefined, { signal: over }).catch(() => {});
}

/** Corelane does all of the article's 10,000; its peers as many as fit into half a minute. */
function normal(concurrency: number, allSeconds: number): Scenario {
  const peerSeconds = Math.min(allSeconds, 22);
  return {
    key: `normal-${concurrency}`,
    title: `normal, C=${concurrency}`,
    seconds: peerSeconds,
    groups: (system) => {
      const seconds = system.name === 'corelane' ? 4 * allSeconds : peerSeconds;
      return [clients(system, concurrency, { count: REQUESTS, seconds })];
    },
  };
}

export const SCENARIOS: Scenario[] = [
  normal(5, 110),
  normal(13, 42),
  normal(20, 38),
  {
    key: 'restart',
    title: 'rolling restart of all workers',
    seconds: SECONDS,
    groups: (system) => [clients(system)],
    act: async (system, { over }) => {
      await pause(1_000, over);
      await system.restartAll();
    },
  },
  {
    key: 'kill',
    title: 'kill -9 of a random worker every second',
    seconds: SECONDS,
    groups: (system) => [clients(system)],
    act: async (system, { random, over }) => {
      for (let second = 1; second < SECONDS - 1 && !over.aborted; second += 1) {
        await pause(1_000, over);
        system.kill(pick(random, system.workers), 'KILL');
      }
    },
  },
  {
    key: 'runaway',
    title: `a worker in an infinite loop, ${RUNAWAYS} times`,
    seconds: SECONDS + 8,
    groups: (system) => [clients(system), { name: RUNAWAY_GROUP, requests: runaways(system) }],
  },
  {
    key: 'kill-all',
    title: 'kill -9 of all workers at once, twice',
    seconds: SECONDS,
    groups: (system) => [clients(system)],
    act: async (system, { over }) => {
      for (const waitMs of [3_000, 7_000]) {
        await pause(waitMs, over);
        for (let worker = 0; worker < system.workers; worker += 1) system.kill(worker, 'KILL');
      }
    },
  },
  {
    key: 'abort',
    title: '10 % of the clients leave after 20 ms',
    seconds: SECONDS,
    groups: (system) => {
      const group = clients(system);
      const requests = group.requests.map((request, number) =>
        number % 10 === 0 ? { ...request, abortAfterMs: 20 } : request,
      );
      return [{ ...group, requests }];
    },
  },
  {
    key: 'slow',
    title: '50 clients beside, whose bodies take 6 s',
    seconds: SECONDS,
    groups: (system) => {
      const requests = spread(system, { ...RENDER, bodyOverMs: 6_000 }, createRandom(2));
      const slow = { name: SLOW_GROUP, concurrency: 50, count: COUNT_MAX, seconds: SECONDS - 6, requests };
      return [clients(system), slow];
    },
  },
];

function runaways(system: System): PlannedRequest[] {
  const random = createRandom(3);
  return Array.from({ length: RUNAWAYS }, (_unused, number) => ({
    path: '/?id={id}&steps=loop',
    target: pick(random, system.targets.length),
    atMs: RUNAWAY_FIRST_MS + number * RUNAWAY_EVERY_MS,
  }));
}

/** Names of the requests that never return. */
export const RUNAWAY_IDS = Array.from({ length: RUNAWAYS }, (_unused, number) => `${RUNAWAY_GROUP}-${number}`);
