/** Express 4 under its own name, next to Express 5. The tests use the same parts of both. */
declare module "express-4" {
  import express from "express";
  export default express;
}
