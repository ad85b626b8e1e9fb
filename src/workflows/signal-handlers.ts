import { defineSignal, log, setDefaultSignalHandler, setHandler } from "@temporalio/workflow";

/**
 * Sets the handlers of all signals. Those that came before the run had any, e.g. while it rolled over, are handled in the order
 * they were sent, whatever their names: set one by one, each handler would take all of its own first. Updates are to be given
 * theirs after this, for a signal that was accepted comes before an update that nobody has answered.
 */
export function setSignalHandlers(
  handlers: ReadonlyMap<string, (argument: unknown) => void>,
): void {
  const takeAny = (name: string, argument: unknown): void => handlers.get(name)?.(argument);
  for (let taken = false; !taken;) {
    try {
      setDefaultSignalHandler(takeAny);
      taken = true;
    } catch (error) {
      // The SDK gives none of its own names to a default handler; that one is gone, the others wait.
      log.warn(`a signal was dropped: ${String(error)}`);
    }
  }
  for (const [name, handler] of handlers) setHandler(defineSignal<[unknown]>(name), handler);
  setDefaultSignalHandler(undefined);
}
