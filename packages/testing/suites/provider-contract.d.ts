export * from "@tollgate/conformance/provider-contract";
