// Random walks of sessions under kills of their worker, held against the pure model. `npm run fuzz -- --help`
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const usage = `fuzz walks sessions through seeded commands while their worker is killed, and holds them against the pure model.
  --seed <n>   this seed alone, exactly as it was; with --seeds so many from it on
  --seeds <n>  so many from a seed that is printed; default 200`;

process.exitCode = await main();

async function main(): Promise<number> {
  const options = readOptions();
  if (options === undefined) {
    console.error(usage);
    return 2;
  }
  const { seed, seeds } = options;
  console.log(`fuzz: ${seeds} from seed ${seed} on`);
  const project = fileURLToPath(new URL("../../../", import.meta.url));
  const child = spawn(
    process.execPath,
    [
      "node_modules/vitest/vitest.mjs",
      "run",
      "test/e2e/random-walk.test.ts",
      "--project=e2e",
      "--disable-console-intercept",
    ],
    {
      cwd: project,
      stdio: "inherit",
      env: { ...process.env, LONGHAUL_TEST_SEED: `${seed}`, LONGHAUL_WALKS: `${seeds}` },
    },
  );
  const [code] = (await once(child, "close")) as [number | null];
  return code ?? 1;
}

function readOptions(): { readonly seed: number; readonly seeds: number } | undefined {
  try {
    const { values } = parseArgs({
      options: {
        seed: { type: "string" },
        seeds: { type: "string" },
        help: { type: "boolean", default: false },
      },
    });
    const seed = Number(values.seed ?? Math.floor(Math.random() * 1e9));
    const seeds = Number(values.seeds ?? (values.seed === undefined ? 200 : 1));
    const valid = Number.isSafeInteger(seed) && Number.isSafeInteger(seeds) && seeds > 0;
    return values.help || !valid ? undefined : { seed, seeds };
  } catch {
    return undefined;
  }
}
