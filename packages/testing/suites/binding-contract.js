export * from "@tollgate/conformance/binding-contract";
