/** Jest environment that prints what `onFailure` collected after a failed test: nothing inside a test can see that. */
import { TestEnvironment } from 'jest-environment-node';

export default class extends TestEnvironment {
  async handleTestEvent(event) {
    // At once, not when the test is done: afterEach may have ended everything by then.
    if (event.name !== 'hook_failure' && event.name !== 'test_fn_failure') return;
    for (const dump of this.global.corelaneFailureDumps ?? []) process.stderr.write(`${dump()}\n`);
  }
}
