import { join } from "node:path";
import { aborted, stopOf, type Io } from "../io.js";
import { Editor } from "./editor.js";
import { openHistory } from "./history.js";
import { lastSeen, rememberSeen } from "./seen.js";
import { ChatWindow, type ChatOptions } from "./window.js";

/** Talks with a session on a terminal until the user leaves or the session is closed; returns the exit code. */
export async function chat(io: Io, options: ChatOptions): Promise<number> {
  const { history, written } = await openHistory(join(options.home, "chat-history"));
  const seen = await lastSeen(options.home, options.session.id);
  const window = new ChatWindow(io, options, new Editor(history));
  const restore = window.open();
  try {
    await window.comeIn(seen);
    await Promise.race([window.left, aborted(io.stop), options.lost]);
  } finally {
    await window.close();
    restore();
    await Promise.all([rememberSeen(options.home, options.session.id, window.seq), written()]);
  }
  return io.stop.aborted ? stopOf(io.stop).exitCode : 0;
}
