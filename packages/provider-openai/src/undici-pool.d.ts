/** undici's pool by itself. Its types are those of the package. */
declare module "undici/lib/dispatcher/pool.js" {
  export { Pool as default } from "undici";
}
