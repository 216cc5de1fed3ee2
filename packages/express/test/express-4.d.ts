/** Express 4 under a name of its own, beside 5; what the tests use of it is the same. */
declare module "express-4" {
  import express from "express";
  export default express;
}
