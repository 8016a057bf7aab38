/** How large a YAML document is once its aliases are written out. Computes only. */
import { type Document, isAlias, isMap, isSeq, type Node } from 'yaml';

/**
 * Values of a document with those of its aliases, however often these stand there: the library bounds how many aliases
 * there are, and not what each of them brings.
 * @throws Error for an anchor that stands within itself
 */
export function writtenOut(document: Document): number {
  const anchors = new Map<string, Node>();
  const counts = new Map<Node, number>();
  const count = (node: unknown): number => {
    if (isAlias(node)) {
      const anchor = anchors.get(node.source);
      if (!anchor) return 1;
      const size = counts.get(anchor);
      if (size === undefined) throw new Error(`the anchor ${node.source} contains itself`);
      return size;
    }
    const { anchor } = (node ?? {}) as { anchor?: string };
    if (anchor !== undefined) anchors.set(anchor, node as Node);
    const sum = partsOf(node).reduce<number>((total, part) => total + count(part), 1);
    if (anchor !== undefined) counts.set(node as Node, sum);
    return sum;
  };
  return count(document.contents);
}

function partsOf(node: unknown): unknown[] {
  if (isMap(node)) return node.items.flatMap(({ key, value }) => [key, value]);
  return isSeq(node) ? node.items : [];
}
