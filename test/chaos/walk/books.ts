import { noticeId } from "../../../src/domain/job-notices.js";
import type { EndReason, InboxTarget, LogEntry } from "../../../src/contracts/log.js";
import type { TodoItem } from "../../../src/contracts/todo.js";
import type { Message, WalkOp } from "./plan.js";
import type { Done, Verdict } from "./play.js";

/**
 * Holds what a walk was answered against the log of the session at rest, with rules of its own; one line for each thing that is
 * not as it should be.
 */
export function bookProblems(done: readonly Done[], log: readonly LogEntry[]): string[] {
  return [
    ...sendProblems(done, log),
    ...fateProblems(log),
    ...todoProblems(done, log),
    ...jobProblems(done, log),
    ...reminderProblems(done, log),
    ...suspensionProblems(log),
  ];
}

/** Each message that had to be taken is put in once, in order; a repeat is answered as the first was; what is refused is nowhere. */
function sendProblems(done: readonly Done[], log: readonly LogEntry[]): string[] {
  const problems: string[] = [];
  const inserted = new Map<string, { readonly seq: number; readonly target: InboxTarget }[]>();
  for (const { seq, type, data } of log) {
    if (type !== "agent/inbox/spliced") continue;
    for (const { id, source } of data.inserted) {
      if (source.kind !== "user" || id.startsWith("rest-")) continue;
      inserted.set(id, [...(inserted.get(id) ?? []), { seq, target: data.target }]);
    }
  }
  const taken = new Map<string, Message>();
  const refusals: string[] = [];
  let last = -1;
  const judge = (message: Message, verdict: Verdict): void => {
    const { id, mode, content } = message;
    const first = taken.get(id);
    const expected = isBad(message)
      ? "INVALID_INPUT"
      : first !== undefined && (first.mode !== mode || first.content !== content)
        ? "DUPLICATE_ID"
        : "ok";
    if (expected !== "ok") {
      if (verdict.kind === "signalled") refusals.push(`${id} ${expected}`);
      else if (verdict.kind === "ok" || verdict.code !== expected)
        problems.push(`message ${id}: ${expected} was due, came ${JSON.stringify(verdict)}`);
      return;
    }
    const [put, ...more] = inserted.get(id) ?? [];
    if (put === undefined || more.length > 0) {
      problems.push(`message ${id}: put in ${put === undefined ? 0 : more.length + 1} times`);
      return;
    }
    if (verdict.kind === "refused") problems.push(`message ${id}: refused, ${verdict.code}`);
    const seq = verdict.kind === "ok" ? (verdict.answer as { seq: number }).seq : put.seq;
    if (seq !== put.seq) problems.push(`message ${id}: answered ${seq}, put in at ${put.seq}`);
    if (first !== undefined) return;
    taken.set(id, message);
    if (put.seq <= last) problems.push(`message ${id}: at ${put.seq}, one before it at ${last}`);
    last = put.seq;
    const lane = mode === "followup" ? "next-turn" : "next-step";
    if (put.target !== lane && mode !== "steer")
      problems.push(`message ${id}: a ${mode} in ${put.target}`);
  };
  for (const { op, verdict } of done) {
    if (op.kind === "send") judge(op.message, verdict);
    if (op.kind === "batch") for (const message of op.messages) judge(message, verdict);
  }
  for (const id of inserted.keys())
    if (!taken.has(id)) problems.push(`message ${id}: put in, and was never to be taken`);
  const logged = log.flatMap((entry) =>
    entry.type === "session/rejected" && entry.data.command === "session.send"
      ? [`${entry.data.id ?? ""} ${entry.data.code}`]
      : [],
  );
  if (logged.toSorted().join() !== refusals.toSorted().join())
    problems.push(`refused signals: ${refusals.join(", ")}; the log has ${logged.join(", ")}`);
  return problems;
}

function isBad({ id, content }: Message): boolean {
  return content.trim() === "" || id.startsWith("job/");
}

/** What was put in leaves its lane in order, and once: it is shown, removed by a cancel, or its turn ended before it was shown. */
function fateProblems(log: readonly LogEntry[]): string[] {
  const problems: string[] = [];
  const lists = { "next-turn": [] as string[], "next-step": [] as string[] };
  const claimed = new Map<string, number>();
  const canceled = new Set<string>();
  const shown = new Map<string, number>();
  const ends = new Map<number, EndReason>();
  let turn = 0;
  for (const { seq, type, data } of log) {
    if (type === "turn/start") turn = data.turn;
    else if (type === "turn/end") ends.set(data.turn, data.reason);
    else if (type === "user/message") {
      const { id } = data.message;
      if (shown.has(id)) problems.push(`message ${id}: shown at ${shown.get(id)} and ${seq}`);
      shown.set(id, seq);
    } else if (type === "agent/inbox/spliced") {
      const { target, start, removedCount = 0, inserted, outcome } = data;
      const ids = inserted.map(({ id }) => id);
      const removed = lists[target].splice(start, removedCount, ...ids);
      if (
        removed.length !== removedCount ||
        (start > 0 && outcome !== "canceled" && removedCount > 0)
      )
        problems.push(`entry ${seq}: takes ${removedCount} from place ${start} of ${target}`);
      for (const id of removed) {
        if (outcome === "canceled") canceled.add(id);
        else claimed.set(id, turn);
      }
    }
  }
  for (const id of [...lists["next-turn"], ...lists["next-step"]])
    problems.push(`message ${id}: still waits at rest`);
  for (const [id, at] of claimed) {
    if (canceled.has(id)) problems.push(`message ${id}: claimed and removed`);
    const kind = ends.get(at)?.kind;
    if (!shown.has(id) && kind !== "aborted")
      problems.push(`message ${id}: claimed by turn ${at}, which ended ${kind}, and never shown`);
  }
  return problems;
}

/** Each write from outside has one verdict in the log, the one that was answered; the list is the last one that was taken. */
function todoProblems(done: readonly Done[], log: readonly LogEntry[]): string[] {
  const problems: string[] = [];
  const logged = new Map<string, (readonly [seq: number, verdict: string])[]>();
  for (const { seq, type, data } of log) {
    if (type !== "todo/write" && type !== "todo/rejected") continue;
    if (data.opId === undefined) continue;
    const verdict = type === "todo/write" ? JSON.stringify(data.todos) : (data.code ?? "");
    logged.set(data.opId, [...(logged.get(data.opId) ?? []), [seq, verdict]]);
  }
  const known = new Set<string>();
  for (const { op, verdict } of done) {
    if (op.kind !== "todos") continue;
    known.add(op.opId);
    const [one, ...more] = logged.get(op.opId) ?? [];
    if (one === undefined || more.length > 0) {
      problems.push(`${op.opId}: ${one === undefined ? 0 : more.length + 1} verdicts in the log`);
      continue;
    }
    const [seq, text] = one;
    const wanted = JSON.stringify(trimmed(op.todos));
    if (verdict.kind === "ok" && (verdict.answer as { seq: number }).seq !== seq)
      problems.push(`${op.opId}: answered ${JSON.stringify(verdict.answer)}, logged at ${seq}`);
    if (verdict.kind === "refused" && text !== verdict.code)
      problems.push(`${op.opId}: answered ${verdict.code}, the log says ${text}`);
    if ((verdict.kind === "ok" || text.startsWith("[")) && text !== wanted)
      problems.push(`${op.opId}: wrote ${wanted}, the log says ${text}`);
  }
  for (const id of logged.keys()) if (!known.has(id)) problems.push(`${id}: nobody wrote it`);
  return problems;
}

function trimmed(todos: readonly TodoItem[]): readonly TodoItem[] {
  return todos.map(({ content, status }) => ({ content: content.trim(), status }));
}

/** The list as the log has it: the last one of the newest turn. */
export function lastTodos(log: readonly LogEntry[]): readonly TodoItem[] | null {
  const last = log.findLast(({ type }) => type === "todo/write" || type === "turn/start");
  return last?.type === "todo/write" ? last.data.todos : null;
}

/** Each accepted start is one job, each job ends once, and its end is told once: by a notice, or to who waited for it or ended it. */
function jobProblems(done: readonly Done[], log: readonly LogEntry[]): string[] {
  const problems: string[] = [];
  const starts = log.flatMap((entry) => (entry.type === "job/start" ? [entry.data] : []));
  const accepted = new Map<string, string>();
  for (const { op, verdict } of done) {
    if (op.kind !== "start-job" || verdict.kind !== "ok") continue;
    const { id } = verdict.answer as { id: string };
    if ((accepted.get(op.opId) ?? id) !== id)
      problems.push(`${op.opId}: answered ${accepted.get(op.opId)}, then ${id}`);
    accepted.set(op.opId, id);
  }
  for (const [opId, id] of accepted) {
    const started = starts.filter((one) => one.opId === opId).map((one) => one.id);
    if (started.join() !== id) problems.push(`${opId}: answered ${id}, started ${started.join()}`);
  }
  for (const { id, opId } of starts)
    if (opId !== undefined && accepted.get(opId) !== id)
      problems.push(`${id}: started for ${opId}, which was answered ${accepted.get(opId)}`);
  for (const id of new Set(starts.map((one) => one.id)))
    problems.push(...jobEndProblems(id, starts.filter((one) => one.id === id).length, log));
  return problems;
}

function jobEndProblems(id: string, started: number, log: readonly LogEntry[]): string[] {
  const problems = started === 1 ? [] : [`${id}: started ${started} times`];
  const ends = log.filter((entry) => entry.type === "job/settled" && entry.data.id === id);
  const [end] = ends;
  if (ends.length !== 1 || end?.type !== "job/settled")
    return [...problems, `${id}: settled ${ends.length} times`];
  const { lane, status } = end.data;
  const announced = log
    .flatMap((entry) => (entry.type === "agent/inbox/spliced" ? entry.data.inserted : []))
    .filter((message) => message.id === noticeId(id)).length;
  if (announced !== (lane === undefined ? 0 : 1))
    problems.push(`${id}: ended by lane ${lane ?? "none"}, announced ${announced} times`);
  const collected = log.some(
    (entry) =>
      entry.type === "tool/result" &&
      entry.seq > end.seq &&
      entry.data.meta?.["jobId"] === id &&
      entry.data.meta["status"] === status,
  );
  const killed = log.some((entry) => entry.type === "job/stopping" && entry.data.id === id);
  if (lane === undefined && !collected && !killed) problems.push(`${id}: nobody was told`);
  return problems;
}

/** Each reminder is delivered at most once, and then as one message; one that comes once is delivered unless it was deleted. */
function reminderProblems(done: readonly Done[], log: readonly LogEntry[]): string[] {
  const problems: string[] = [];
  const changes = log.flatMap((entry) => (entry.type === "schedule/change" ? [entry.data] : []));
  const messages = log
    .flatMap((entry) => (entry.type === "agent/inbox/spliced" ? entry.data.inserted : []))
    .map(({ id }) => id)
    .filter((id) => id.startsWith("schedule/"));
  const given = new Set<string>();
  for (const change of changes) {
    if (change.operation !== "create") continue;
    const { id, kind, scheduledAt } = change.schedule;
    if (given.has(id)) problems.push(`${id}: given twice`);
    given.add(id);
    const count = (operation: string): number =>
      changes.filter((one) => one.operation === operation && "id" in one && one.id === id).length;
    const [dispatched, deleted] = [count("dispatch"), count("delete")];
    const told = messages.filter((one) => one === `schedule/${id}/${scheduledAt}`).length;
    const due = kind === "every" ? 0 : 1 - deleted;
    if (deleted > 1 || dispatched !== due || told !== due)
      problems.push(`${id}: deleted ${deleted}, dispatched ${dispatched}, told ${told} times`);
  }
  const outcomes = new Map<string, string[]>();
  for (const { type, data } of log) {
    if (type === "schedule/accepted")
      add(outcomes, data.requestId, `${data.answer.operation} ${data.answer.id}`);
    if (type === "schedule/rejected") add(outcomes, data.requestId, data.code);
  }
  for (const { op, verdict } of done) {
    if (op.kind !== "remind" && op.kind !== "unremind") continue;
    const [logged, ...more] = outcomes.get(op.requestId) ?? [];
    const operation = op.kind === "remind" ? "create" : "delete";
    const answered =
      verdict.kind === "ok"
        ? `${operation} ${(verdict.answer as { id: string }).id}`
        : verdict.kind === "refused"
          ? verdict.code
          : logged;
    if (logged === undefined || more.length > 0 || answered !== logged)
      problems.push(
        `${op.requestId}: answered ${answered}, the log says ${logged} and ${more.join()}`,
      );
  }
  return problems;
}

function add(lists: Map<string, string[]>, key: string, value: string): void {
  lists.set(key, [...(lists.get(key) ?? []), value]);
}

/** While a session is suspended no turn opens. */
function suspensionProblems(log: readonly LogEntry[]): string[] {
  let suspended = false;
  return log.flatMap(({ seq, type, data }) => {
    if (type === "session/live") suspended = data.suspended === true;
    return type === "turn/start" && suspended ? [`entry ${seq}: a turn opens while suspended`] : [];
  });
}

/** One line for people. */
export function lineOf({ op, verdict }: Done): string {
  const said =
    verdict.kind === "signalled"
      ? "signalled"
      : verdict.kind === "refused"
        ? verdict.code
        : JSON.stringify(verdict.answer);
  return `${describe(op)} → ${said}`;
}

function describe(op: WalkOp): string {
  return JSON.stringify(op, (_, value: unknown) =>
    typeof value === "string" && value.length > 60 ? `${value.slice(0, 60)}…` : value,
  );
}
