import { type Reader, schemaOf, withSchema, wrongValue } from "./read.ts";
import { content } from "./scalars.ts";

const web = /^https?:\/\/[^\s/]/i;
const data = /^data:image\/[a-z0-9.+-]{1,64};base64,/i;
const base64 = /^[A-Za-z0-9+/]+={0,2}$/;
const maxWebUrlLength = 8_192;

/** The URL of an image: a web address, which the gateway passes on but never opens, or a base64 data URL. */
export const imageUrl: Reader<string> = withSchema(
  (value, path, limits) => {
    const url = content(value, path, limits);
    if (web.test(url)) {
      if (url.length > maxWebUrlLength || !URL.canParse(url))
        throw wrongValue(`must be a valid URL of at most ${maxWebUrlLength} characters`, path);
      return url;
    }
    const prefix = data.exec(url)?.[0];
    if (prefix === undefined)
      throw wrongValue(
        "must be an http(s) URL or a data URL such as data:image/png;base64,…",
        path,
      );
    if (!base64.test(url.slice(prefix.length)))
      throw wrongValue("must contain the image in base64", path);
    return url;
  },
  () => schemaOf(content),
);
