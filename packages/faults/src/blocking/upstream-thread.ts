/** An upstream on its own thread. The requested model names the shape of its answer. */
import { parentPort } from "node:worker_threads";
import { scriptedUpstream } from "@tollgate/testing";
import { goodAnswer } from "../upstream-bytes.ts";
import { answerShapes } from "./answer-shapes.ts";

const names = Object.keys(answerShapes);
const upstream = await scriptedUpstream(async ({ body, send, end }) => {
  const number = /^\{"model":"vendor\/shape-(\d+)"/.exec(body)?.[1];
  const shape = number === undefined ? undefined : answerShapes[names[Number(number)] ?? ""];
  if (shape === undefined) return send(goodAnswer(body));
  for (const piece of shape.pieces()) await send(piece);
  end();
});
parentPort?.postMessage(upstream.url);
