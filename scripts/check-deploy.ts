// Checks deploy/ as far as a machine without a container engine can: `npm run check:deploy`. It needs systemd-analyze,
// kubectl, and from Debian's packages bubblewrap and prometheus. The Dockerfile isn't built here.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { check, report } from "./check.ts";
import { checkManifests } from "./deploy/check-manifests.ts";
import { checkUnit } from "./deploy/check-systemd.ts";
import { runFirstDay } from "./deploy/first-day.ts";
import { runConfined } from "./deploy/run-confined.ts";
import { neededBy, packPackages } from "./install/pack-packages.ts";
import { runNpm } from "./install/run-npm.ts";

const scratch = mkdtempSync(join(tmpdir(), "tollgate-deploy-"));
try {
  await check("the systemd unit is valid and confined", () =>
    checkUnit("deploy/systemd/tollgate.service"),
  );
  await check("the Kubernetes manifests render to valid objects", () =>
    checkManifests("deploy/kubernetes", scratch),
  );
  await check("the alerts are valid and fire when they should", () => {
    const tests = { cwd: "deploy/prometheus", stdio: "pipe" } as const;
    execFileSync("promtool", ["test", "rules", "alerts.test.yml"], tests);
  });
  await check("the configuration that the manifests mount is valid", () => {
    const env = { ...process.env, DATABASE_URL: "postgres://gateway@127.0.0.1/tollgate" };
    const words = ["check", "--strict", "--config", "deploy/kubernetes/tollgate.config.yaml"];
    execFileSync(process.execPath, ["packages/cli/bin/tollgate.js", ...words], {
      env,
      stdio: "pipe",
    });
  });
  const app = join(scratch, "app");
  await check("the packed packages install as in the image", () => {
    const packages = neededBy("tollgate", packPackages(process.cwd(), scratch));
    mkdirSync(app);
    writeFileSync(join(app, "package.json"), "{}");
    const tarballs = packages.map(({ path }) => path);
    runNpm(app, "install", "--omit=dev", "--no-audit", "--no-fund", ...tarballs);
  });
  await check("the packed command line runs confined as in its container", () => runConfined(app));
  await check("fifty teams from one file, a scrape and an alert", () => runFirstDay(app));
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
report();
