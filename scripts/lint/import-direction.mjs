// Lint rule `longhaul/import-direction`: which folder of src may import what (docs/design.md §2).
import { dirname, relative, resolve, sep } from "node:path";

const plainNode = { packages: "any", never: ["@temporalio/"] };
const world = ["contracts", "models", "tools", "kinds", "process", "store"];

/**
 * `areas`: folders of src it may import besides itself. `packages`: exact names, or prefixes ending in `/`, or "any"
 * (Node modules included) minus the prefixes in `never`, plus those in `but`.
 */
const areas = {
  contracts: { areas: [], packages: [] },
  schemas: { areas: ["contracts", "domain"], packages: ["zod"] },
  domain: { areas: ["contracts"], packages: ["@noble/hashes/"] },
  workflows: {
    areas: ["contracts", "domain"],
    packages: ["@temporalio/workflow", "@temporalio/common"],
  },
  models: { areas: ["contracts", "schemas"], ...plainNode },
  process: { areas: ["contracts", "schemas", "store"], ...plainNode },
  store: { areas: ["contracts", "schemas"], ...plainNode },
  tools: { areas: ["contracts", "schemas", "process", "store"], ...plainNode },
  kinds: { areas: ["contracts", "schemas", "process", "store", "tools"], ...plainNode },
  time: { areas: ["contracts", "domain"], packages: ["temporal-polyfill/implementation"] },
  activities: {
    areas: [...world, "schemas", "domain", "time"],
    ...plainNode,
    but: ["@temporalio/activity", "@temporalio/client", "@temporalio/common"],
  },
  client: {
    areas: ["contracts", "schemas", "domain", "store", "time"],
    ...plainNode,
    but: ["@temporalio/client", "@temporalio/common", "@temporalio/proto"],
  },
  testing: { areas: ["contracts", "models"], packages: [] },
  config: { areas: ["contracts", "schemas", "domain", "store"], ...plainNode },
  worker: {
    areas: [...world, "schemas", "domain", "workflows", "activities", "client", "config"],
    packages: "any",
    never: [],
  },
  server: {
    areas: ["contracts", "schemas", "store", "config", "worker"],
    packages: "any",
    never: [],
  },
  cli: {
    areas: [...world, "schemas", "time", "client", "config", "worker", "server"],
    packages: "any",
    never: [],
  },
};

/** The area of a path below the project, or undefined outside src. `src/config*.ts` are the area `config`. */
function areaOf(path) {
  const parts = path.split(sep);
  if (parts[0] !== "src" || parts.length < 2) return undefined;
  if (parts[1] === "contracts" && parts[2] === "schemas") return "schemas";
  return parts.length === 2 ? parts[1].split(/[-.]/)[0] : parts[1];
}

function allowsPackage(rule, name) {
  const matches = (list) =>
    (list ?? []).some((item) => (item.endsWith("/") ? name.startsWith(item) : name === item));
  if (rule.packages !== "any") return matches(rule.packages);
  return !matches(rule.never) || matches(rule.but);
}

/** Why `file` may not import `source`, or undefined when it may. Paths of `file` are below the project root. */
function refusal(root, file, source) {
  const area = areaOf(file);
  if (area === undefined) {
    const alone = /^test[\\/]support[\\/]witness/.test(file);
    const target = relative(root, resolve(root, dirname(file), source)).split(sep)[0];
    return alone && source.startsWith(".") && target === "src"
      ? "the witness shares no code with src"
      : undefined;
  }
  const rule = areas[area];
  if (rule === undefined)
    return `src/${area} has no import rule in scripts/lint/import-direction.mjs`;
  if (!source.startsWith(".")) {
    return allowsPackage(rule, source)
      ? undefined
      : `${area} must not import the package ${source}`;
  }
  const target = areaOf(relative(root, resolve(root, dirname(file), source)));
  if (target === area || rule.areas.includes(target)) return undefined;
  return `${area} must not import ${target === undefined ? "files outside src" : target}`;
}

const importDirection = {
  create(context) {
    const file = relative(context.cwd, context.filename);
    const check = (node) => {
      if (node?.type === "Literal" && typeof node.value === "string") {
        const message = refusal(context.cwd, file, node.value);
        if (message !== undefined)
          context.report({ node, message: `${message} (docs/design.md §2)` });
      } else if (node && areaOf(file) !== undefined && !looseAreas.has(areaOf(file))) {
        context.report({ node, message: "a computed import hides what is imported" });
      }
    };
    return {
      ImportDeclaration: (node) => check(node.source),
      ExportNamedDeclaration: (node) => node.source && check(node.source),
      ExportAllDeclaration: (node) => check(node.source),
      ImportExpression: (node) => check(node.source),
      TSImportType: (node) => check(node.source ?? node.argument?.literal),
      TSExternalModuleReference: (node) => check(node.expression),
      CallExpression: (node) => {
        if (node.callee.type === "Identifier" && node.callee.name === "require") {
          check(node.arguments[0]);
        }
      },
    };
  },
};

/** Areas that load files a user names (scenarios, custom tools), so a computed import is their business. */
const looseAreas = new Set(["models", "tools", "worker", "config", "cli", "server"]);

export default { meta: { name: "longhaul" }, rules: { "import-direction": importDirection } };
