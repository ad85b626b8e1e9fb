import * as z from "zod";
import type { ArchivedSession, SegmentHeader } from "../archive.js";

const seq = z.int().min(0);
const segmentName = z.string().regex(/^[0-9a-f]{64}$/u);

export const segmentHeaderSchema = z.strictObject({
  v: z.literal(1),
  session: z.string(),
  run: z.string(),
  from: seq,
  to: seq,
  previous: z.union([z.literal(""), segmentName]),
}) satisfies z.ZodType<SegmentHeader>;

export const archivedSessionSchema = z.strictObject({
  v: z.literal(1),
  session: z.string(),
  run: z.string(),
  segment: segmentName,
  lastSeq: seq,
  status: z.enum(["completed", "failed", "terminated", "cancelled", "timed-out"]),
  title: z.string().exactOptional(),
  startedAt: z.number(),
  closedAt: z.number(),
}) satisfies z.ZodType<ArchivedSession>;
