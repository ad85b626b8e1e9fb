import { command, jsonOption } from "../command.js";
import { packageVersion } from "../package.js";

export const versionCommand = command({
  name: "version",
  summary: "Print the version",
  options: { ...jsonOption },
  run({ io }, _words, options) {
    io.stdout.write(
      options.json === true
        ? `${JSON.stringify({ version: packageVersion, node: process.versions.node }, undefined, 2)}\n`
        : `${packageVersion}\n`,
    );
    return Promise.resolve(0);
  },
});
