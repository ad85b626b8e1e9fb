import type { MeterState, NodeMeasure } from "./token-meter.js";
import { sum } from "./token-meter.js";

/** The surface as compaction sees it. */
export interface Measured {
  readonly hidden: MeterState["hidden"];
  readonly nodes: readonly NodeMeasure[];
}

/** The first `end` nodes of the surface are to be summarised. */
export interface CompactionSpan {
  readonly end: number;
  /** Estimate. */
  readonly tokens: number;
}

/**
 * What is summarised: everything before the retained end, the cut moved earlier until it splits no call from its result;
 * undefined when nothing is left to cut (K4). `retain` in tokens, or `newest`: only the newest unit stays. `most`: the span is
 * to fit this many tokens, so that the summary's own request is not too large.
 */
export function planSpan(
  { hidden, nodes }: Measured,
  retain: number | "newest",
  most = Infinity,
): CompactionSpan | undefined {
  let cut = nodes.length;
  if (retain === "newest") cut -= 1;
  else
    for (let kept = 0; cut > 0; cut -= 1) {
      kept += nodes[cut - 1]?.tokens ?? 0;
      if (kept > retain) break;
    }
  const isCut = (at: number): boolean => (at === 0 ? hidden : nodes[at - 1])?.settled === true;
  const sizeOf = (at: number): number => hidden.tokens + sum(nodes.slice(0, at));
  while (cut > 0 && (!isCut(cut) || sizeOf(cut) > most)) cut -= 1;
  if (cut <= 0 && hidden.length === 0) return undefined;
  if (cut < 0 || !isCut(cut)) return undefined;
  // A summary alone has been made as short as it gets.
  if (hidden.length === 0 && cut === 1 && nodes[0]?.checkpoint === true) return undefined;
  return { end: hidden.length + cut, tokens: sizeOf(cut) };
}
