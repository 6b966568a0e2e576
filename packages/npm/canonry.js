#!/usr/bin/env node
// Starts the program of the package for this platform, which npm installed as an optional dependency.
"use strict";

const { spawn } = require("node:child_process");

const platform = `${process.platform}-${process.arch}`;
const file = process.platform === "win32" ? "canonry.exe" : "canonry";

let program;
try {
  program = require.resolve(`@canonry/${platform}/bin/${file}`);
} catch {
  console.error(
    `canonry: the package @canonry/${platform} is not installed. ` +
      "Install canonry again without --omit=optional, or see docs/install.md for other ways.",
  );
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// A terminal sends Ctrl-C to both processes; whoever stops a service sends SIGTERM to this one alone.
process.on("SIGINT", () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`canonry: ${program} could not be started: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else {
    process.exit(code);
  }
});
