// The public types of the npm package as sorted lines, one for each item: a listing for each entry, of what it exports and of the
// types that one meets there without being able to import them. Reads the declarations that were built into dist/package/types.
import { createRequire } from "node:module";
import { join, sep } from "node:path";

/** Of the package that the API reference is made with: the compiler of src/js has no interface for programs. */
const loadTypeScript = (root) => createRequire(join(root, "docs/reference/package.json"))("typescript");

/** A map from the name of a file to its text. */
export function listDeclarations(root, manifest) {
  const ts = loadTypeScript(root);
  const folder = join(root, "dist/package");
  const entries = entriesOf(manifest);
  const files = entries.map(({ types }) => join(folder, types));
  const program = ts.createProgram(files, {
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    target: ts.ScriptTarget.ES2022,
    types: [],
    noEmit: true,
    skipLibCheck: true,
  });
  const lister = new Lister(ts, program.getTypeChecker(), join(folder, "types") + sep);
  const listings = new Map();
  const entryOfTypes = new Map();
  for (const { name, types } of entries) {
    const same = entryOfTypes.get(types);
    if (same !== undefined) {
      listings.set(fileName(name), `export * from "${same}"\n`);
      continue;
    }
    entryOfTypes.set(types, name);
    const source = program.getSourceFile(join(folder, types));
    if (source === undefined) throw new Error(`dist/package/${types} is missing: run make package first`);
    listings.set(fileName(name), `${lister.list(name, source).join("\n")}\n`);
  }
  return listings;
}

/** The main entry first, so that the others refer to it. */
function entriesOf({ name, exports }) {
  const typed = Object.entries(exports).filter(([, target]) => target.types !== undefined);
  return typed
    .map(([path, { types }]) => ({ name: path === "." ? name : `${name}/${path.slice(2)}`, types }))
    .sort((one, other) => compare(one.name, other.name));
}

const fileName = (entry) => `${entry.replace("/", "-")}.txt`;
const compare = (one, other) => (one < other ? -1 : Number(one > other));

class Lister {
  /** The entry and the name by which a symbol can be imported, or `undefined` as its entry where it cannot. */
  #listed = new Map();
  #printer;

  constructor(ts, checker, folder) {
    Object.assign(this, { ts, checker, folder });
    this.#printer = ts.createPrinter({ removeComments: true, omitTrailingSemicolon: true });
  }

  list(entry, source) {
    const lines = [];
    const reached = [];
    const exported = this.checker.getExportsOfModule(this.checker.getSymbolAtLocation(source));
    const own = [];
    for (const symbol of exported) {
      const target = this.#resolved(symbol);
      const before = this.#listed.get(target);
      if (before?.entry !== undefined) {
        const name = before.name === symbol.name ? symbol.name : `${before.name} as ${symbol.name}`;
        lines.push({ name: symbol.name, order: 0, text: `export { ${name} } from "${before.entry}"` });
      } else {
        this.#listed.set(target, { entry, name: symbol.name });
        own.push({ name: symbol.name, target, note: "" });
      }
    }
    reached.push(...own);
    for (let item = reached.shift(); item !== undefined; item = reached.shift()) {
      for (const declaration of item.target.declarations ?? []) {
        for (const text of this.#itemsOf(item.name, declaration)) {
          lines.push({ name: item.name, order: text.isHead ? 0 : 1, text: text.text + item.note });
        }
        for (const met of this.#metIn(declaration)) {
          if (this.#listed.has(met)) continue;
          this.#listed.set(met, { entry: undefined, name: met.name });
          reached.push({ name: met.name, target: met, note: " // not exported" });
        }
      }
    }
    lines.sort(
      (one, other) => compare(one.name, other.name) || one.order - other.order || compare(one.text, other.text),
    );
    return [...new Set(lines.map(({ text }) => text))];
  }

  #resolved(symbol) {
    return symbol.flags & this.ts.SymbolFlags.Alias ? this.checker.getAliasedSymbol(symbol) : symbol;
  }

  /** The line of a declaration, and one for each of its members. */
  #itemsOf(name, node) {
    const { ts } = this;
    const generics = node.typeParameters ? `<${node.typeParameters.map((one) => this.#print(one)).join(", ")}>` : "";
    const heritage = (node.heritageClauses ?? []).map((clause) => ` ${this.#print(clause)}`).join("");
    const members = (head, list, open = " {") => [
      { isHead: true, text: head },
      ...list
        .filter((member) => this.#isPublic(member))
        .map((member) => ({ text: `${head}${open} ${this.#print(member)} }` })),
    ];
    if (ts.isClassDeclaration(node)) {
      const abstract = node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.AbstractKeyword) ? "abstract " : "";
      const [head, ...rest] = members(`${abstract}class ${name}`, node.members);
      return [{ ...head, text: `${head.text}${generics}${heritage}` }, ...rest];
    }
    if (ts.isInterfaceDeclaration(node)) {
      const [head, ...rest] = members(`interface ${name}`, node.members);
      return [{ ...head, text: `${head.text}${generics}${heritage}` }, ...rest];
    }
    if (ts.isTypeAliasDeclaration(node)) return this.#alias(`type ${name}`, generics, node.type, members);
    if (ts.isVariableDeclaration(node)) {
      const head = `const ${name}`;
      if (node.type && ts.isTypeLiteralNode(node.type)) return members(head, node.type.members, ": {");
      return [{ isHead: true, text: `${head}: ${node.type ? this.#print(node.type) : this.#print(node.initializer)}` }];
    }
    if (ts.isFunctionDeclaration(node)) {
      const parameters = node.parameters.map((one) => this.#print(one)).join(", ");
      return [{ isHead: true, text: `function ${name}${generics}(${parameters}): ${this.#print(node.type)}` }];
    }
    return [{ isHead: true, text: `${name}: ${this.#print(node)}` }];
  }

  /** An object has a line for each member, and a union one for each of what it may be, also behind what all of them have. */
  #alias(head, generics, type, members) {
    const { ts } = this;
    if (ts.isTypeLiteralNode(type)) {
      const [first, ...rest] = members(head, type.members, " = {");
      return [{ ...first, text: `${head}${generics} = object` }, ...rest];
    }
    const bare = (node) => (ts.isParenthesizedTypeNode(node) ? bare(node.type) : node);
    const parts = ts.isIntersectionTypeNode(type) ? type.types.map(bare) : [bare(type)];
    const unions = parts.filter((part) => ts.isUnionTypeNode(part));
    if (unions.length !== 1) return [{ isHead: true, text: `${head}${generics} = ${this.#print(type)}` }];
    const shared = parts
      .filter((part) => part !== unions[0])
      .map((part) => `${this.#print(part)} & `)
      .join("");
    return [
      { isHead: true, text: `${head}${generics} = ${shared}union` },
      ...unions[0].types.map((one) => ({ text: `${head} | ${this.#print(one)}` })),
    ];
  }

  #isPublic(member) {
    const { ts } = this;
    if (member.name && ts.isPrivateIdentifier(member.name)) return false;
    return !member.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.PrivateKeyword);
  }

  #print(node) {
    const text = this.#printer.printNode(this.ts.EmitHint.Unspecified, node, node.getSourceFile());
    return text.replace(/\s+/g, " ").replace(/;$/, "").trim();
  }

  /** What a declaration names of the package. */
  #metIn(declaration) {
    const { ts, checker } = this;
    const met = new Set();
    const visit = (node) => {
      if (ts.isClassElement?.(node) && !this.#isPublic(node)) return;
      if (ts.isIdentifier(node) && node.parent !== declaration) {
        const symbol = checker.getSymbolAtLocation(node);
        const target = symbol && this.#resolved(symbol);
        const own = target?.declarations?.some((one) => this.#isTopLevel(one));
        if (own) met.add(target);
      }
      ts.forEachChild(node, visit);
    };
    visit(declaration);
    return met;
  }

  #isTopLevel(declaration) {
    const { ts } = this;
    if (!declaration.getSourceFile().fileName.startsWith(this.folder)) return false;
    const holder = ts.isVariableDeclaration(declaration) ? declaration.parent.parent : declaration;
    return ts.isSourceFile(holder.parent) && !ts.isSourceFile(declaration);
  }
}
