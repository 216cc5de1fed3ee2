import { describeEveryDoor } from "../../admin/test/doors.ts";
import { sqliteStore } from "../src/index.ts";
import { migratedFiles } from "./temporary-folder.ts";

const migratedFile = migratedFiles();

describeEveryDoor("sqliteStore", { open: () => sqliteStore({ filename: migratedFile() }) });
