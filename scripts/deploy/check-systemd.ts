import { execFileSync } from "node:child_process";

/** The highest exposure that `systemd-analyze security` may compute, from 0 to 10. */
const maxExposure = 1.5;

/** Checks a unit with systemd's own tools. @throws Error if a line of it is wrong, or if it may do too much */
export function checkUnit(unit: string): void {
  execFileSync("systemd-analyze", ["verify", unit], { stdio: "pipe" });
  const printed = execFileSync("systemd-analyze", ["security", "--offline=true", unit], {
    encoding: "utf8",
  });
  const exposure = Number(/Overall exposure level for \S+: ([\d.]+)/.exec(printed)?.[1]);
  if (!(exposure <= maxExposure))
    throw new Error(`The exposure of ${unit} is ${exposure}, over ${maxExposure}.`);
}
