/** The environment of the operator: what it is read as, and what a mistake in it looks like. */
import { readSettings } from '../../src/settings.ts';
import { asTold, TOLD } from '../support/told.ts';

const least = { CORELANE_SIDECAR_IMAGE: 'sidecar:1', CORELANE_POD_NAME: 'p', CORELANE_POD_NAMESPACE: 'corelane' };

test('namespaces are a list with commas, and names', () => {
  const read = (CORELANE_NAMESPACES?: string) => readSettings({ ...least, CORELANE_NAMESPACES }).CORELANE_NAMESPACES;
  expect([read(), read(''), read('shop'), read('shop, blog,shop')]).toEqual([[], [], ['shop'], ['shop', 'blog']]);
  expect(() => read('shop,*')).toThrow(asTold(TOLD.namespaces));
});

test('a number that cannot be is refused by the name of its variable, with what that is for', () => {
  expect(() => readSettings({ ...least, CORELANE_CONCURRENCY: '0' })).toThrow(asTold(TOLD.settings));
});

test('nobody monitors unless somebody is named', () => {
  expect(readSettings(least).CORELANE_MONITORING).toEqual([]);
  expect(readSettings({ ...least, CORELANE_MONITORING: '' }).CORELANE_MONITORING).toEqual([]);
});

test('those who monitor are a list of NetworkPolicyPeers', () => {
  const peers = [{ namespaceSelector: {} }, { ipBlock: { cidr: '10.0.0.0/8' } }];
  expect(readSettings({ ...least, CORELANE_MONITORING: JSON.stringify(peers) }).CORELANE_MONITORING).toEqual(peers);
});

test.each([
  ['no JSON', '[{'],
  ['no list', '{"namespaceSelector":{}}'],
  ['a peer that is nobody', '[{}]'],
  ['a field that a peer does not have', '[{"cidr":"10.0.0.0/8"}]'],
])('%s is refused by the name of the variable', (_what, value) => {
  expect(() => readSettings({ ...least, CORELANE_MONITORING: value })).toThrow(/CORELANE_MONITORING: /);
});
