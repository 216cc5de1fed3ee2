import { Server } from "node:http";
import { Duplex } from "node:stream";
import { expect, it } from "vitest";
import { clientOf, limitConnectionsPerAddress } from "./server-limits.ts";

it.each([
  ["192.0.2.1", "192.0.2.1"],
  ["::ffff:192.0.2.1", "192.0.2.1"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2"],
  ["2001:db8:1:2::9", "2001:db8:1:2"],
  ["2001:db8::9", "2001:db8:0:0"],
  ["2001::3:4:5:6:7:8", "2001:0:3:4"],
  ["::1", "0:0:0:0"],
  ["fe80::1%eth0", "fe80:0:0:0"],
])("counts the connections of %s under %s", (address, client) => {
  expect(clientOf(address)).toBe(client);
});

it("leaves connections to other addresses, before anyone has sent a byte (H16)", () => {
  const server = new Server();
  server.removeAllListeners("connection");
  limitConnectionsPerAddress(server, 2);
  const connect = (remoteAddress: string | undefined): Duplex => {
    const socket = Object.assign(new Duplex({ read() {} }), { remoteAddress });
    server.emit("connection", socket);
    return socket;
  };
  const isOpen = ({ destroyed }: Duplex): boolean => !destroyed;
  const hogs = Array.from({ length: 2_000 }, () => connect("192.0.2.1"));
  const network = Array.from({ length: 2_000 }, (_, at) => connect(`2001:db8:1:2::${at}`));
  expect([hogs.filter(isOpen).length, network.filter(isOpen).length]).toEqual([2, 2]);
  const others = ["192.0.2.2", "2001:db8:1:3::1", undefined, undefined, undefined].map(connect);
  expect(others.filter(isOpen)).toHaveLength(5);
});
