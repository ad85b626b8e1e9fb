/** The last line of some output that has anything in it, at most 200 characters. */
export function lastLineOf(bytes: Buffer): string {
  const lines = bytes
    .toString("utf8")
    .replaceAll("\0", "\uFFFD")
    .split(/[\r\n]+/);
  return (lines.findLast((line) => line.trim() !== "") ?? "").slice(-200);
}
