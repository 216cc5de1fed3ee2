export * from "@tollgate/conformance/store-contract";
