/** Something that is begun, and held until it is let go. One at a time. */
export class Gate {
  #begun = new Signal();
  #open = new Signal();

  /** What is held calls this. */
  async pass(): Promise<void> {
    this.#begun.give();
    await this.#open.given;
  }

  /** Resolves when it is held. */
  get begun(): Promise<void> {
    return this.#begun.given;
  }

  /** Lets it go; the next one is held again. */
  release(): void {
    this.#open.give();
    this.#begun = new Signal();
    this.#open = new Signal();
  }
}

class Signal {
  give: () => void = () => {};
  readonly given = new Promise<void>((resolve) => {
    this.give = resolve;
  });
}
