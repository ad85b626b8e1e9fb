/** Finds the matching lines of files; what cannot be read or is over the size limit has none. */
export interface LineSearch {
  /**
   * Numbers of the first `limit` matching lines of each file, in the order of `paths`; undefined when it was stopped.
   * A binary file may have some: whoever shows them looks at its bytes.
   */
  lines(
    paths: readonly string[],
    limit: number,
  ): Promise<readonly (readonly number[])[] | undefined>;
  close(): Promise<void>;
}
