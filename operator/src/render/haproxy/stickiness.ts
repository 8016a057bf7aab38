/**
 * Requests that are to stay at a revision: those that name one (`x-deployment-id`, `?dpl=`), and those of people who
 * have a page of it (docs/version-skew.md). Lua leads them to a pod of that revision
 * (sidecar/haproxy/stickiness/actions.lua), on the way that a canary has.
 */
import { type Lines, words } from '../directives.ts';
import type { DataPlaneModel } from '../model/index.ts';
import { live } from './live.ts';
import { IS_RENDER } from './served-as.ts';
import { HAS_REVISION_COOKIE, NOTES_REVISION_COOKIE } from './sticky-cookies.ts';

/** What such a request has. */
const NAMES_ONE = ['{ req.fhdr(X-Deployment-Id) -m found }', '{ url_param(dpl) -m found }', HAS_REVISION_COOKIE];

/** In frontend `front`, before a canary decides, which has no say in these: acl `kept`. */
export function keepsRevision({ classes, quarantine }: DataPlaneModel): Lines {
  const rest = words(
    classes && IS_RENDER,
    quarantine && '!poison',
    '!{ req.hdr(Upgrade) -m found } !{ var(txn.is_second_try) -m bool }',
  );
  return [
    '# A request that names a revision, or whose page was of one: to that revision, while it lives. A second try is for whoever is there.',
    NOTES_REVISION_COOKIE,
    'acl names_revision var(txn.names_revision) -m bool',
    NAMES_ONE.map((names) => `http-request set-var(txn.names_revision) bool(true) if ${names}`),
    words('http-request lua.keep_revision if names_revision', rest),
    'acl kept var(txn.is_kept) -m bool',
  ];
}

/** In frontend `front`, when it is known who renders the request. */
export const NOTES_REVISION = `http-request lua.note_revision if { ${live('sticky-cookie')} -m int 2 }`;

/** In backend `line`: what is kept here must not be lent to a pod of another revision. */
export const STAYS_AT_REVISION = `use-server slots if { var(txn.is_kept) -m bool } { ${live('across-revisions')} -m int 1 }`;
