/** undici's pool on its own, with the types of the package. */
declare module "undici/lib/dispatcher/pool.js" {
  export { Pool as default } from "undici";
}
