/** Objects by their name, and by who owns them: the one is what the other is, whatever happens in whatever order. */
import { ObjectStore } from '../../../src/kube/object-store.ts';
import { controllerOf } from '../../../src/kube/owner.ts';
import type { KubeObject } from '../../../src/kube/types.ts';

function object(namespace: string, name: string, owner?: string, version = '1'): KubeObject {
  const reference = (uid: string) => ({ apiVersion: 'v1', kind: 'A', name: uid, uid, controller: true });
  const ownerReferences = owner === undefined ? {} : { ownerReferences: [reference(owner)] };
  return { apiVersion: 'v1', kind: 'Pod', metadata: { namespace, name, resourceVersion: version, ...ownerReferences } };
}

const namesOf = (objects: readonly KubeObject[]) => objects.map(({ metadata }) => metadata.name);

test('those of an owner, of one namespace, in the order of their coming', () => {
  const store = new ObjectStore();
  for (const name of ['b', 'a', 'c']) store.set(object('web', name, 'U'));
  store.set(object('web', 'other', 'V'));
  store.set(object('web', 'nobody', undefined));
  // Anybody may name an owner of another namespace.
  store.set(object('evil', 'd', 'U'));
  expect(namesOf(store.ownedBy('web', 'U'))).toEqual(['b', 'a', 'c']);
  expect(namesOf(store.ownedBy('evil', 'U'))).toEqual(['d']);
  expect(store.ownedBy('none', 'U')).toEqual([]);
  // Another version takes the place of the one before.
  store.set(object('web', 'b', 'U', '2'));
  expect(namesOf(store.ownedBy('web', 'U'))).toEqual(['b', 'a', 'c']);
  expect(store.ownedBy('web', 'U')[0]?.metadata.resourceVersion).toBe('2');
});

test('another owner, none any more, gone', () => {
  const store = new ObjectStore();
  for (const name of ['a', 'b', 'c']) store.set(object('web', name, 'U'));
  store.set(object('web', 'a', 'V'));
  store.set(object('web', 'b'));
  expect([namesOf(store.ownedBy('web', 'U')), namesOf(store.ownedBy('web', 'V'))]).toEqual([['c'], ['a']]);
  store.delete(object('web', 'c'));
  store.delete(object('web', 'unknown', 'V'));
  expect([store.ownedBy('web', 'U'), namesOf(store.ownedBy('web', 'V'))]).toEqual([[], ['a']]);
});

test('a new list takes the place of all', () => {
  const store = new ObjectStore();
  for (const name of ['a', 'b']) store.set(object('web', name, 'U'));
  const changed = store.replace([object('web', 'b', 'U'), object('web', 'c', 'U')]);
  expect(namesOf(changed)).toEqual(['c', 'a']);
  expect(namesOf(store.ownedBy('web', 'U'))).toEqual(['b', 'c']);
});

test('in whatever order: it is what a look through all of them finds', () => {
  const store = new ObjectStore();
  let seed = 7;
  const random = (below: number) => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed % below;
  };
  const [namespaces, owners] = [
    ['web', 'shop'],
    [undefined, 'U', 'V', 'W'],
  ];
  for (let n = 0; n < 5_000; n += 1) {
    const one = object(namespaces[random(2)] as string, `p${random(12)}`, owners[random(4)], String(n));
    if (random(3) === 0) store.delete(one);
    else store.set(one);
    const [namespace, owner] = [namespaces[random(2)] as string, owners[1 + random(3)] as string];
    const expected = store.list(namespace).filter((other) => controllerOf(other)?.uid === owner);
    expect(new Set(store.ownedBy(namespace, owner))).toEqual(new Set(expected));
  }
});
