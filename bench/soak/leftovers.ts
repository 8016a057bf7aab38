/** Everything that is in the namespaces of a run, of whatever kind the API server knows: what is left at its end. */
import type { Api, Metadata } from './api.ts';

interface Group {
  preferredVersion: { groupVersion: string };
}
interface ResourceKind {
  name: string;
  namespaced: boolean;
  verbs: string[];
}

/** Told for an hour, and then forgotten, by the API server itself. */
const EVENTS = /\/events$/;
/** Figures, no objects. */
const FIGURES = /^\/apis\/metrics\.k8s\.io\//;

async function namespacedCollections(api: Api): Promise<((namespace: string) => string)[]> {
  const { groups } = await api.request<{ groups: Group[] }>('GET', '/apis');
  const roots = ['/api/v1', ...groups.map(({ preferredVersion }) => `/apis/${preferredVersion.groupVersion}`)];
  const found: ((namespace: string) => string)[] = [];
  for (const root of roots.filter((one) => !FIGURES.test(`${one}/`))) {
    const { resources } = await api.request<{ resources: ResourceKind[] }>('GET', root);
    for (const { name, namespaced, verbs } of resources) {
      if (!namespaced || !verbs.includes('list') || EVENTS.test(`/${name}`)) continue;
      found.push((namespace) => `${root}/namespaces/${namespace}/${name}`);
    }
  }
  return found;
}

/** Paths of all objects of these namespaces; `isOurs` tells what the run itself has put there. */
export async function objectsIn(
  api: Api,
  namespaces: string[],
  isOurs: (metadata: Metadata) => boolean,
): Promise<Set<string>> {
  const paths = new Set<string>();
  for (const collectionOf of await namespacedCollections(api)) {
    for (const namespace of namespaces) {
      const collection = collectionOf(namespace);
      for (const metadata of await api.metadata(collection)) {
        if (!isOurs(metadata)) paths.add(`${collection}/${metadata.name}`);
      }
    }
  }
  return paths;
}
