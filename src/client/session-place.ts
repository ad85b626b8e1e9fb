import { commands } from "../contracts/names.js";
import { parseInput } from "../contracts/schemas/parse.js";
import { rebindSchema } from "../contracts/schemas/session.js";
import type { CommandResult } from "../contracts/session.js";
import type { SessionWriter } from "./session-write.js";
import { freshId } from "./update-id.js";

/** Where one session is and whether it may open turns by itself, for SessionClient, which documents it (design D5). */
export class SessionPlace {
  readonly #writer: SessionWriter;

  constructor(writer: SessionWriter) {
    this.#writer = writer;
  }

  async suspend(): Promise<void> {
    await this.#writer.write<CommandResult>(commands.suspend, freshId("p", Date.now()), {});
  }

  async resume(): Promise<void> {
    await this.#writer.write<CommandResult>(commands.resume, freshId("p", Date.now()), {});
  }

  async rebind(host: string): Promise<void> {
    const command = parseInput(rebindSchema, { host }, "rebind");
    await this.#writer.write<CommandResult>(commands.rebind, freshId("b", Date.now()), command);
  }
}
