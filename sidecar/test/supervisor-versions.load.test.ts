/**
 * The supervisor on all Node.js versions that it promises to work with, which takes minutes; NODE_VERSIONS chooses
 * some.
 */
import { NODE_VERSIONS } from '../../e2e/harness/engine/node-versions.ts';
import { testVersions } from './supervisor-versions.ts';

testVersions(NODE_VERSIONS);
