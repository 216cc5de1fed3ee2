import { describe, it } from "node:test";
import { describePolicy } from "./describe-policy.ts";

describePolicy({ describe, it });
