import type { LonghaulClient } from "../../src/client/index.js";
import type { SessionClient } from "../../src/client/session-client.js";
import { scriptedConfig } from "./session-config.js";

/** A session whose model runs commands in the foreground, one after the other. */
export class Foreground {
  readonly #session: SessionClient;

  private constructor(session: SessionClient) {
    this.#session = session;
  }

  static async open(client: LonghaulClient, directory: string, cwd: string): Promise<Foreground> {
    const calls = [{ tool: "bash", args: { command: "date +%s%N", description: "the time" } }];
    const turns = [{ repeat: 100, steps: [{ repeat: 10, calls }, { text: "done" }] }];
    const config = await scriptedConfig(
      directory,
      "foreground",
      { name: "foreground", turns },
      cwd,
    );
    return new Foreground(await client.createSession({ config }));
  }

  /** Ten commands: from the call in the log to the command begun, ms. */
  async sample(): Promise<readonly number[]> {
    const { seq } = await this.#session.followup("go");
    await this.#session.waitIdle({ after: seq });
    const called = new Map<string, number>();
    const took: number[] = [];
    for await (const entry of this.#session.log({ after: seq })) {
      if (entry.type === "tool/call") called.set(entry.data.callId, entry.time);
      if (entry.type !== "tool/result") continue;
      const [block] = entry.data.message.content;
      if (block?.type !== "tool-result") continue;
      const begun = Number(/^\d{19}/u.exec(block.content[0]?.text ?? "")?.[0]) / 1e6;
      took.push(begun - (called.get(block.callId) ?? Number.NaN));
    }
    if (took.length !== 10 || took.some(Number.isNaN)) throw new Error("ten commands should run");
    return took;
  }

  close(): Promise<unknown> {
    return this.#session.close();
  }
}
