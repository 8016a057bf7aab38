/** The supervisor on the oldest Node.js that it promises to work with, and on the current LTS. */
import { testVersions } from './supervisor-versions.ts';

// Of node-versions.ts. The limit is longer than a worker can be without CPU.
testVersions(['18.19.1', '24.21.0'], { stallMs: 4_000 });
