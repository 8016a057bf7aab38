/** Breakages of limits of the ports that are not for clients. */
import { type Mutant, REMOVED } from './mutant.ts';

const breakages: Omit<Mutant, 'file'>[] = [
  {
    name: 'a program of the same user listens beside HAProxy',
    breaks: 'doors',
    edits: [[/ {2}noreuseport\n/g, REMOVED]],
    caughtBy: 'doors: no program of the pod can listen',
  },
  {
    name: 'whole pages as often as anybody likes',
    breaks: 'doors',
    edits: [[/ {2}http-request return status 429 .*\n/g, REMOVED]],
    caughtBy: 'doors: pages with all metrics',
  },
  {
    name: 'a page is narrow because it says so',
    breaks: 'doors',
    edits: [[/\^\(no-maint&.*$/gm, 'metrics=']],
    caughtBy: 'doors: pages with all metrics',
  },
  {
    name: 'the statistics page for whatever path',
    breaks: 'doors',
    edits: [[/ {2}http-request return status 404 .* unless statistics.*\n/g, REMOVED]],
    caughtBy: 'doors: what is not there',
  },
  {
    name: 'clear-text HTTP/2',
    breaks: 'doors',
    edits: [[/ {2}option disable-h2-upgrade\n/g, REMOVED]],
    caughtBy: 'doors: no listener of HAProxy speaks HTTP/2',
  },
  {
    name: 'idle connections wait as long as they like',
    breaks: 'doors',
    edits: [[/timeout http-request 1s\n/g, 'timeout http-request 1h\n']],
    caughtBy: 'doors: the node to each port',
  },
  {
    name: 'as many pages as 5,000 connections can ask for',
    breaks: 'doors',
    edits: [
      [/ {2}http-request return status 429 .*\n/g, REMOVED],
      [/ {2}rate-limit sessions .*\n/g, REMOVED],
      [/ {2}option httpclose\n/g, REMOVED],
      [/ {2}maxconn [0-9]+\n/g, REMOVED],
    ],
    caughtBy: 'doors: the node to each port',
  },
  {
    name: 'strangers are as welcome as kubelet',
    breaks: 'doors',
    edits: [[/ {2}tcp-request connection reject .*\n/g, REMOVED]],
    caughtBy: 'doors: another pod to each port',
  },
];

export const doors: Mutant[] = breakages.map((mutant) => ({ ...mutant, file: 'haproxy.cfg' }));
