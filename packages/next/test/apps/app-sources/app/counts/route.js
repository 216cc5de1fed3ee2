import { counts, edit, gateway } from "../gateway.js";

export const dynamic = "force-dynamic";

/** What the process has open, and what its calls have cost. */
export async function GET() {
  const { data } = await gateway.activity.list({ organizationId: "acme" });
  const calls = data.map(({ userId, costNanoUsd }) => ({ userId, costNanoUsd }));
  return Response.json({ ...counts, edit, pid: process.pid, calls });
}
