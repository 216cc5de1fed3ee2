import { counts, edit, gateway } from "../gateway.js";

export const dynamic = "force-dynamic";

/** The open resources of the process, and the cost of its calls. */
export async function GET() {
  const { data } = await gateway.activity.list({ organizationId: "acme" });
  const calls = data.map(({ userId, costNanoUsd }) => ({ userId, costNanoUsd }));
  return Response.json({ ...counts, edit, pid: process.pid, calls });
}
