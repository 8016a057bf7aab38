/**
 * Errors as the log and the status have them: one line with what is wrong, why, and what to do. pino's own form has
 * every property of an error, which for a time-out of fetch are the forty constants of DOMException.
 */
import { ApiError, NoAnswerError } from './rest.ts';

const LENGTH_MAX = 2_000;
/** Of a chain that may be a ring. */
const CAUSES_MAX = 8;

/** What went wrong: the error, and what it says of its causes, with codes, and a way out where one is known. */
export function errorLine(error: unknown): string {
  const chain = causesOf(error);
  const parts = chain.map(described);
  // Many a library repeats the message of the cause in its own.
  const said = parts.filter((part, index) => part !== '' && !parts.slice(0, index).some((one) => one.includes(part)));
  const hint = chain.map(hintOf).find((one) => one !== undefined);
  const text = [said.join(': '), placeOf(chain), hint].filter(Boolean).join('; ');
  return text.replaceAll(/\s+/g, ' ').slice(0, LENGTH_MAX) || 'unknown error';
}

/** The error, its cause, the cause of that, ... */
function causesOf(error: unknown): unknown[] {
  const chain: unknown[] = [];
  for (let one = error; one !== undefined && one !== null && chain.length < CAUSES_MAX; one = causeOf(one))
    chain.push(one);
  return chain;
}

function causeOf(error: unknown): unknown {
  const { cause, errors } = error as { cause?: unknown; errors?: unknown };
  // Of several addresses that were tried one is enough.
  return cause ?? (Array.isArray(errors) ? errors[0] : undefined);
}

function described(error: unknown): string {
  if (error instanceof ApiError) return `${error.message} (${error.status} ${error.reason})`;
  if (typeof error !== 'object') return String(error);
  const { message = '' } = error as { message?: unknown };
  const code = codeOf(error);
  const text = String(message);
  return code === undefined || text.includes(code) ? text : `${text} (${code})`.trim();
}

/** Such as ECONNREFUSED. A DOMException has a number there, which says nothing. */
function codeOf(error: unknown): string | undefined {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? code : undefined;
}

const UNREACHABLE = 'is the API server up, and does a NetworkPolicy let the operator reach it?';
const UNTRUSTED = 'the certificate of the API server is not trusted; NODE_EXTRA_CA_CERTS can name further authorities';
const HINTS: Record<string, string> = {
  ...Object.fromEntries(
    [
      ...['ECONNREFUSED', 'ECONNRESET', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN', 'ETIMEDOUT', 'EPIPE'],
      ...['UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_SOCKET'],
    ].map((code) => [code, UNREACHABLE]),
  ),
  ...Object.fromEntries(
    [
      ...['DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
      ...['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'CERT_HAS_EXPIRED', 'ERR_TLS_CERT_ALTNAME_INVALID'],
    ].map((code) => [code, UNTRUSTED]),
  ),
  EADDRINUSE: 'another process has the port; CORELANE_METRICS_PORT and CORELANE_HEALTH_PORT can name others',
};

const API_HINTS: Record<number, string> = {
  401: "the operator's token is not accepted: was its ServiceAccount deleted and made again? Restart the pod",
  403: "are the operator's Roles those of its version? Upgrade the chart together with the image",
  429: 'the API server has too much to do',
};
/** Of a kind that the API server does not know, not of an object. */
const NO_SUCH_KIND = /the server could not find the requested resource/;

function hintOf(error: unknown): string | undefined {
  if (error instanceof NoAnswerError) return 'the API server is overloaded, or the network loses packets';
  if (error instanceof ApiError) {
    if (error.status === 404 && NO_SUCH_KIND.test(error.message))
      return 'is the CRD there? kubectl apply --server-side -f crds/';
    return API_HINTS[error.status];
  }
  return HINTS[codeOf(error) ?? ''];
}

/** Where a mistake of ours is, of which the message alone says too little. */
function placeOf(chain: unknown[]): string | undefined {
  const last = chain.at(-1);
  const isOurs =
    last instanceof TypeError ||
    last instanceof ReferenceError ||
    last instanceof RangeError ||
    last instanceof SyntaxError;
  if (!isOurs || codeOf(last) !== undefined) return undefined;
  return /^\s+(at .*)$/m.exec(last.stack ?? '')?.[1];
}
