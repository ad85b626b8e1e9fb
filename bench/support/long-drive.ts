import type { SessionClient } from "../../src/client/session-client.js";

/** What a session was asked for, to be compared with its log. */
export interface Asked {
  readonly messages: readonly string[];
  readonly jobs: readonly string[];
  readonly reminders: number;
}

/** Messages in the inbox at once. */
export const batch = 25;
const jobEvery = 50;
const reminderEvery = 100;

/** A turn: a call of a state tool, then an answer; more steps where a notice joins it. */
export const longScenario = {
  name: "long",
  contextWindow: 24_000,
  summary: { text: "So far there were many turns: {{bytes:1500}}" },
  turns: [
    {
      repeat: 1_000_000,
      steps: [
        {
          text: "I write down what turn ${turn} is about.",
          calls: [
            {
              tool: "todo_write",
              args: {
                todos: [
                  { content: "answer turn ${turn}", status: "in_progress" },
                  { content: "wait for the next one", status: "pending" },
                ],
              },
            },
          ],
        },
        { expect: { toolResults: ["/./"] }, text: "Turn ${turn} is done: {{bytes:300}}" },
        { text: "That was a notice.", repeat: 20 },
      ],
    },
  ],
};

/** Talks to one session as its user, and keeps it busy from outside: jobs that end at once, reminders that are due soon. */
export class LongDrive implements Asked {
  readonly #session: SessionClient;
  readonly messages: string[] = [];
  readonly jobs: string[] = [];
  reminders = 0;
  #turns = 0;

  constructor(session: SessionClient) {
    this.#session = session;
  }

  /** Until `count` messages have been answered; returns the number of turns so far, with those of jobs and reminders. */
  async until(count: number): Promise<number> {
    while (this.messages.length < count) {
      const sent = this.messages.length;
      if (sent % jobEvery === 0) {
        const { id } = await this.#session.startJob({ kind: "bash", input: { command: "echo x" } });
        this.jobs.push(id);
      }
      if (sent % reminderEvery === 0) {
        const set = await this.#session.remind({ prompt: `look after ${sent}`, in: 1 });
        if (!set.ok) throw new Error(`no reminder was set: ${set.message}`);
        this.reminders += 1;
      }
      let last = -1;
      for (const end = Math.min(count, sent + batch); this.messages.length < end;) {
        const id = `message-${this.messages.length + 1}`;
        const { seq } = await this.#session.followup(`Go on with part ${id}.`, { id });
        this.messages.push(id);
        last = seq;
      }
      const { turn, lastEnd } = await this.#session.waitIdle({ after: last });
      if (lastEnd?.kind !== "completed")
        throw new Error(`turn ${turn.number} ended ${JSON.stringify(lastEnd)}`);
      this.#turns = turn.number;
    }
    return this.#turns;
  }

  /** Until every job has ended and every reminder is delivered. */
  async settle(): Promise<void> {
    for (;;) {
      const [{ jobs }, list] = await Promise.all([this.#session.jobs(), this.#session.reminders()]);
      if (
        list.ok &&
        list.reminders.length === 0 &&
        jobs.every(({ finishedAt }) => finishedAt !== undefined)
      )
        break;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    await this.#session.waitIdle();
  }
}
