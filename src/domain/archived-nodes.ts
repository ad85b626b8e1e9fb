import { LonghaulError } from "../contracts/errors.js";
import type { ArchivedNode, SurfaceNode, SurfacePage } from "../contracts/session.js";

/** Is the message of a node in the archive? */
export function isArchived(node: SurfaceNode | ArchivedNode): node is ArchivedNode {
  return "archived" in node;
}

/** The nodes of a page that is to have all its messages. ARCHIVE_UNAVAILABLE. */
export function presentNodes(page: SurfacePage): readonly SurfaceNode[] {
  return page.nodes.map((node) => {
    if (!isArchived(node)) return node;
    throw new LonghaulError(
      "ARCHIVE_UNAVAILABLE",
      `the message of log entry ${node.seq} is archived, and this reader has no store`,
    );
  });
}
