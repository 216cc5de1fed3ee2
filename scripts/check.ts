const counts = { passed: 0, failed: 0 };

/** Runs one check of a script and prints how it ended. Later checks run even if it fails. */
export async function check(name: string, run: () => void | Promise<void>): Promise<void> {
  try {
    await run();
    counts.passed++;
    console.log(`ok: ${name}`);
  } catch (error) {
    counts.failed++;
    const output = error instanceof Error && "stdout" in error ? String(error.stdout ?? "") : "";
    console.error(`FAILED: ${name}\n${error instanceof Error ? error.message : error}\n${output}`);
  }
}

/** Prints the last line of a script, and sets its exit code. */
export function report(): void {
  console.log(`${counts.passed} passed, ${counts.failed} failed`);
  process.exitCode = counts.failed > 0 ? 1 : 0;
}
