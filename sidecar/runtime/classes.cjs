/** Requests that are no renders (spec.classes), as the environment names them. */
'use strict';

/** As many as spec.classes may have. */
const CLASSES_MAX = 5;
/**
 * Requests that renders have sent to their own site have places as those of a class have, and their metrics behind
 * those of classes: one pool for each number of such requests that led to one (operator/src/render/model/own-site.ts).
 */
const OWN_SITE_POOLS = 2;

/** `api=4 image=2`: limits by name, in the order of their metrics. */
function parseClasses(text = '') {
  const found = [...text.matchAll(/([a-z][a-z0-9-]*)=([0-9]+)/g)].slice(0, CLASSES_MAX);
  return found.map(([, name, limit]) => ({ name, limit: Number(limit) }));
}

/** The classes of this worker. */
function ownClasses() {
  return parseClasses(process.env.CORELANE_CLASSES);
}

module.exports = { CLASSES_MAX, OWN_SITE_POOLS, ownClasses, parseClasses };
