/**
 * What an event loop's idle time, by the number of requests in progress, says about the requests: how long they wait
 * for each second of CPU. That one number says how busy any number of them would keep the CPU.
 *
 * E.g. 40 ms of CPU and 40 ms of waiting: ratio 1. One at a time keeps the CPU busy for 50 % of the time, two for 80 %
 * (now and then both wait), three for 94 %, four for 98 %. Computes only; docs/adr/0041-auto-concurrency.md has the
 * simulation.
 */
'use strict';

/** Ratios that are tried: 0.005 to 240, each 8 % above the one before. The result moves by a place at 20 % or so. */
const RATIOS = Array.from({ length: 141 }, (_unused, index) => 0.005 * 1.08 ** index);

/**
 * Share of the time that one CPU is busy with `n` requests in progress, for n = 0 to `most`: mean-value analysis of a
 * closed network of one CPU and any number of waits.
 */
function busyShares(ratio, most) {
  const shares = [0];
  let queued = 0;
  for (let n = 1; n <= most; n += 1) {
    const residence = 1 + queued;
    const throughput = n / (ratio + residence);
    queued = throughput * residence;
    shares.push(throughput);
  }
  return shares;
}

/** One row for each of RATIOS, of requests up to `most`. */
function tableOf(most) {
  return RATIOS.map((ratio) => ({ ratio, shares: busyShares(ratio, most) }));
}

/**
 * The row that fits best to what was measured. Each number of requests counts for as long as there were so many.
 * @param timeMs, idleMs by number of requests: how long there were so many, and how much of that the loop was idle
 */
function bestRow(table, timeMs, idleMs) {
  const levels = [...timeMs.keys()].filter((n) => n > 0 && timeMs[n] > 0);
  const errorOf = ({ shares }) =>
    levels.reduce((sum, n) => sum + timeMs[n] * (shares[n] - (1 - idleMs[n] / timeMs[n])) ** 2, 0);
  let best = table[0];
  let least = errorOf(best);
  for (const row of table) {
    const error = errorOf(row);
    if (error < least) [best, least] = [row, error];
  }
  return best;
}

module.exports = { bestRow, busyShares, tableOf };
