/** In frontend `front`: whether a request is a render, or of a class (classes.ts). */
import { type Lines, when, words } from '../directives.ts';
import type { RequestClass } from '../model/classes.ts';
import { word } from '../safe.ts';

/** Before the headers of nginx are taken away. */
export const NOTES_SERVED_AS: Lines = [
  'http-request set-var(txn.served_as) req.hdr(X-Corelane-Served-As)',
  'acl in_class var(txn.served_as) -m found',
];

/** Requests of classes with `replay: false` are rendered once, unless no worker has begun them. */
export function rendersOnce(classes: RequestClass[]): Lines {
  const once = classes.filter(({ isReplayed }) => !isReplayed).map(({ name }) => word(name, 'classes.name'));
  return when(
    once.length > 0,
    words('http-request set-var(txn.only_once) bool(true) if { var(txn.served_as) -m str', ...once, '}'),
  );
}

/** After that: the worker is told. No order of renders, no quarantine: neither is for these. */
export const TELLS_CLASS = 'http-request set-header X-Corelane-Class %[var(txn.served_as)] if in_class';
export const NOT_RANKED = 'http-request unset-var(txn.class) if in_class';
export const NOT_SUSPECT = 'http-request unset-var(txn.url) if in_class';
/** For rules about render slots and their queue. */
export const IS_RENDER = '!in_class';
