/** What a command of `npx corelane` is. */

/** A sub-command: one file each. */
export interface Command {
  /** One line for the list of commands. */
  summary: string;
  /** Text of `corelane COMMAND --help`. */
  help: string;
  /**
   * @param args what stands behind the command's name
   * @returns exit code
   * @throws UsageError for arguments that cannot be used
   */
  run(args: string[]): number | Promise<number>;
}
