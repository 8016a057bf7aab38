// The same as an ES module (--import).
import { appendFileSync } from 'node:fs';

appendFileSync(process.env.EVENTS, `${JSON.stringify({ event: 'import', pid: process.pid })}\n`);
