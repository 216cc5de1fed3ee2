import { formatUsd } from "@tollgate/core";
import { budgetId, gateway } from "./gateway.ts";
import { organizationId } from "./visitor.ts";

const shownCalls = 6;

/** The cost of the chat today, read from the gateway without HTTP. */
export async function Spend() {
  const { limit } = await gateway.budgets.get({ id: budgetId });
  const { data: counters } = await gateway.budgets.status({ id: budgetId });
  const settled = counters[0]?.settled ?? 0;
  const { data: calls } = await gateway.activity.list({ organizationId }, { limit: shownCalls });
  return (
    <aside className="spend">
      <h2>Spend today</h2>
      <p>
        <output>{formatUsd(settled)}</output> of {formatUsd(limit)}
      </p>
      <meter min={0} max={limit} value={settled} aria-label="Spend today" />
      <table>
        <thead>
          <tr>
            <th>model</th>
            <th>tokens</th>
            <th>cost</th>
          </tr>
        </thead>
        <tbody>
          {calls.map(({ id, model, totalTokens, costNanoUsd }) => (
            <tr key={id}>
              <td>{model}</td>
              <td>{totalTokens}</td>
              <td>{costNanoUsd === null ? "unknown" : formatUsd(costNanoUsd)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </aside>
  );
}
