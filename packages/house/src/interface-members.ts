import { type SourceFile, visit } from "./source-file.ts";

/** The members of an interface, by name. @throws Error when the file declares none of that name. */
export function interfaceMembers(file: SourceFile, name: string): readonly string[] {
  const found: string[] = [];
  visit(file, {
    TSInterfaceDeclaration: ({ id, body }) => {
      if (id.name !== name) return;
      for (const member of body.body)
        if (member.type === "TSPropertySignature" && member.key.type === "Identifier")
          found.push(member.key.name);
    },
  });
  if (found.length === 0) throw new Error(`${file.path} declares no members of ${name}`);
  return found;
}
