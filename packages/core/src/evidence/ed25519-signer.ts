import { createPrivateKey, createPublicKey, type JsonWebKey, KeyObject, sign } from "node:crypto";
import { type EvidenceSigner, isSignerName, signerNameRule } from "../contracts/evidence-signer.ts";
import type { GatewayError } from "../errors/gateway-error.ts";
import { invalidInput, problemAt } from "../input/read.ts";

/** A private Ed25519 key: PEM (PKCS #8), a JSON Web Key or a `KeyObject`. */
export type Ed25519PrivateKey = string | JsonWebKey | KeyObject;

/**
 * Creates a signer from a key in this process: `openssl genpkey -algorithm ed25519` makes one in PEM. The private key is
 * never shown.
 * @throws GatewayError `invalid_configuration` for another kind of key, or for an invalid name
 */
export function ed25519Signer(options: {
  readonly name: string;
  readonly privateKey: Ed25519PrivateKey;
}): EvidenceSigner {
  const { name } = options;
  if (!isSignerName(name)) throw invalid("name", signerNameRule);
  const key = readKey(options.privateKey);
  const { x = "" } = createPublicKey(key).export({ format: "jwk" });
  return {
    contract: 1,
    name,
    publicKey: new Uint8Array(Buffer.from(x, "base64url")),
    sign: (bytes) => sign(null, bytes, key),
  };
}

/** The error of a key that can't be read may quote it, so it is not the cause. */
function readKey(given: Ed25519PrivateKey): KeyObject {
  let key: KeyObject | null = null;
  try {
    key = given instanceof KeyObject ? given : parseKey(given);
  } catch {
    // Reported below.
  }
  if (key?.type === "private" && key.asymmetricKeyType === "ed25519") return key;
  throw invalid("privateKey", "must be a private Ed25519 key: PEM, a JSON Web Key or a KeyObject");
}

function invalid(option: string, rule: string): GatewayError {
  return invalidInput([problemAt(option, rule)], "invalid_configuration");
}

function parseKey(given: string | JsonWebKey): KeyObject {
  return createPrivateKey(typeof given === "string" ? given : { key: given, format: "jwk" });
}
