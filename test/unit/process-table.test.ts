import { execFileSync, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { describe, expect, it, onTestFinished } from "vitest";

import { procTable, psTable } from "../../src/process/process-table.js";

// `axeww` is how Linux spells what macOS calls `-axEww`.
const tables = [
  ["/proc", procTable, process.platform === "linux"],
  ["ps", psTable(process.platform === "linux" ? ["axeww"] : ["-axEww"]), true],
] as const;

for (const [name, table, usable] of tables) {
  describe.runIf(usable)(`the process table from ${name}`, () => {
    it("knows a process by its start time, its group and its environment, and only while it lives", async () => {
      const mark = randomUUID();
      const env = { ...process.env, LONGHAUL_CALL: mark };
      const child = spawn("sleep", ["1000"], { detached: true, stdio: "ignore", env });
      const pid = child.pid ?? 0;
      onTestFinished(() => void child.kill("SIGKILL"));
      await once(child, "spawn");
      const start = await table.startTime(pid);
      expect(start).toMatch(/\S/);
      expect(await table.startTime(pid)).toBe(start);
      expect(await table.startTime(process.pid)).not.toBe(undefined);
      expect(await table.members(pid)).toEqual([pid]);
      expect(await table.carrying({ LONGHAUL_CALL: mark })).toEqual([pid]);
      expect(await table.carrying({ LONGHAUL_CALL: mark.slice(0, -1) })).toEqual([]);
      expect(await table.carrying({ LONGHAUL_CALL: mark, LONGHAUL_HOME: "elsewhere" })).toEqual([]);
      child.kill("SIGKILL");
      await once(child, "exit");
      expect(await table.startTime(pid)).toBeUndefined();
      expect(await table.members(pid)).toEqual([]);
    });

    it("counts a zombie as gone", async () => {
      // The inner shell ends when the outer one has become `sleep`, which never asks for it.
      const child = spawn("bash", ["-c", "bash -c 'echo $$; read' <&0 & exec sleep 1000"], {
        stdio: ["pipe", "pipe", "ignore"],
      });
      onTestFinished(() => void child.kill("SIGKILL"));
      const [line] = await once(child.stdout, "data");
      const zombie = Number(String(line));
      const outer = ["-o", "comm=", "-p", String(child.pid)];
      await expect
        .poll(() => execFileSync("ps", outer, { encoding: "utf8" }).trim(), { timeout: 10_000 })
        .toBe("sleep");
      child.stdin.end();
      await expect.poll(() => table.startTime(zombie), { timeout: 10_000 }).toBeUndefined();
      expect(() => process.kill(zombie, 0)).not.toThrow();
    });
  });
}
