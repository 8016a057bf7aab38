/** Jest environment that prints what `onFailure` collected after a failed test: nothing inside a test can see that. */
import { TestEnvironment } from 'jest-environment-node';

export default class extends TestEnvironment {
  async handleTestEvent(event) {
    const failed =
      event.name === 'hook_failure' || (event.name === 'test_done' && (event.test?.errors ?? []).length > 0);
    if (!failed) return;
    for (const dump of this.global.corelaneFailureDumps ?? []) process.stderr.write(`${dump()}\n`);
  }
}
