import { oneLine } from "../render/clean.js";
import { glyphsOf, pad, styled, widthOf, type Style, type Terminal } from "../render/terminal.js";
import type { Check } from "./check.js";

const styles: Readonly<Record<Check["status"], Style>> = {
  ok: "green",
  warn: "yellow",
  fail: "red",
};

/** The checks for a person: status, name, what was found; below it the cure. Nothing is cut: cures are copied. */
export function checkLines(checks: readonly Check[], terminal: Terminal): string {
  const width = Math.max(...checks.map(({ name }) => widthOf(name)));
  const { arrow } = glyphsOf(terminal);
  const lines = checks.flatMap(({ status, name, found, cure }) => [
    `${styled(terminal, styles[status], status.padEnd(4))}  ${pad(name, width)}  ${oneLine(found)}`,
    ...(cure === undefined ? [] : [`      ${pad("", width)}  ${arrow} ${oneLine(cure)}`]),
  ]);
  return `${lines.join("\n")}\n`;
}
