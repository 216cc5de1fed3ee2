import { createPublicKey, type KeyObject, verify } from "node:crypto";
import type { EvidenceSigner } from "../contracts/evidence-signer.ts";
import { sha256Of } from "../kernel/digest.ts";
import { rootOf, type Tree } from "./tree.ts";

/** The algorithm of Ed25519 in signed notes. */
const ed25519 = Uint8Array.of(1);

/** Makes and checks signed notes in C2SP's format for checkpoints of logs. */
export interface NoteSigner {
  /** The key for verifiers: `name+id+key`, as in C2SP's signed notes. */
  readonly verificationKey: string;
  /** The text of a tree's checkpoint, which its signature covers. */
  textOf(organizationId: string, tree: Tree): string;
  /** @throws Error if the signer fails, or doesn't sign with its key */
  sign(text: string): Promise<string>;
  /** Whether a note is this text, with a valid signature or one of another key. */
  isNoteOf(text: string, note: string): boolean;
}

export function createNoteSigner(signer: EvidenceSigner): NoteSigner {
  const { name, publicKey } = signer;
  const key = publicKeyOf(publicKey);
  const keyId = sha256Of(name, "\n", ed25519, publicKey).subarray(0, 4);
  const lineStart = `\u2014 ${name} `;

  const isValid = (text: string, line: string): boolean => {
    const bytes = Buffer.from(line.slice(lineStart.length), "base64");
    if (!bytes.subarray(0, 4).equals(keyId)) return true;
    return verify(null, Buffer.from(text), key, bytes.subarray(4));
  };
  return {
    verificationKey: [
      name,
      keyId.toString("hex"),
      Buffer.concat([ed25519, publicKey]).toString("base64"),
    ].join("+"),
    textOf(organizationId, tree) {
      const origin = originOf(name, organizationId);
      return `${origin}\n${tree.size}\n${Buffer.from(rootOf(tree)).toString("base64")}\n`;
    },
    async sign(text) {
      const bytes = Buffer.from(text);
      const signature = await signer.sign(bytes);
      if (!verify(null, bytes, key, signature))
        throw new Error("The signature wasn't made with the signer's key.");
      return `${text}\n${lineStart}${Buffer.concat([keyId, signature]).toString("base64")}\n`;
    },
    isNoteOf(text, note) {
      if (!note.startsWith(`${text}\n`)) return false;
      const lines = note.slice(text.length + 1).split("\n");
      const own = lines.filter((line) => line.startsWith(lineStart));
      return own.length > 0 && own.every((line) => isValid(text, line));
    },
  };
}

/** The name of a log. An organization's id may hold any character. */
function originOf(name: string, organizationId: string): string {
  return organizationId === ""
    ? name
    : `${name}/organizations/${encodeURIComponent(organizationId)}`;
}

function publicKeyOf(publicKey: Uint8Array): KeyObject {
  const x = Buffer.from(publicKey).toString("base64url");
  return createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
}
