import { describeEveryDoor } from "../../admin/test/doors.ts";
import { memoryStore } from "../src/index.ts";

describeEveryDoor("memoryStore", { open: memoryStore });
