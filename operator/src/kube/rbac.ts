/**
 * What the operator may do: the chart's Roles are made from this table, and a test runs the operator with exactly
 * these rights. A verb that no code uses has no place here. No rule lets it read a Secret.
 */
import { GROUP, PLURAL } from '../api/names.ts';

export interface PolicyRule {
  apiGroups: string[];
  resources: string[];
  verbs: string[];
}

/**
 * Objects of which the operator keeps a cache and which it applies. "create" is what apply needs for a new object; a
 * whole update takes a field away that somebody has put in.
 */
const OWNED = ['get', 'list', 'watch', 'create', 'patch', 'update'];

export const rules: Record<'namespaced' | 'ownNamespace', PolicyRule[]> = {
  /** In every namespace with RenderServices: a ClusterRole, or a Role in the one namespace. */
  namespaced: [
    { apiGroups: [GROUP], resources: [PLURAL], verbs: ['get', 'list', 'watch'] },
    { apiGroups: [GROUP], resources: [`${PLURAL}/status`, `${PLURAL}/scale`], verbs: ['patch'] },
    // blockOwnerDeletion in an owner reference needs it where OwnerReferencesPermissionEnforcement is on
    { apiGroups: [GROUP], resources: [`${PLURAL}/finalizers`], verbs: ['update'] },
    { apiGroups: [''], resources: ['configmaps'], verbs: [...OWNED, 'delete'] },
    // The key of the peers: made, never read. That there is one, 409 says.
    { apiGroups: [''], resources: ['secrets'], verbs: ['create'] },
    { apiGroups: [''], resources: ['services'], verbs: OWNED },
    { apiGroups: ['apps'], resources: ['deployments'], verbs: [...OWNED, 'delete'] },
    { apiGroups: ['policy'], resources: ['poddisruptionbudgets'], verbs: [...OWNED, 'delete'] },
    { apiGroups: ['networking.k8s.io'], resources: ['networkpolicies'], verbs: [...OWNED, 'delete'] },
    { apiGroups: ['apps'], resources: ['replicasets'], verbs: ['list', 'watch'] },
    // An annotation, so that kubelet looks at their files at once: without it live settings take up to two minutes. A
    // label, so that the Service leads to pods of a revision, or no longer.
    { apiGroups: [''], resources: ['pods'], verbs: ['list', 'watch', 'patch'] },
    { apiGroups: ['metrics.k8s.io'], resources: ['pods'], verbs: ['list'] },
    { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create'] },
  ],
  /** In the operator's own namespace: leader election. */
  ownNamespace: [{ apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'create', 'update'] }],
};
