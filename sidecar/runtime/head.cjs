/**
 * Who asks the runtime port: somebody who can only make the program fetch a URL (an SSRF, a page in a headless browser)
 * must get no heap snapshot and no profile, which cost the worker time and tell what it has in memory.
 */
'use strict';

/**
 * The proxies take headers of this name from what comes from outside, so a program that passes on its client's headers
 * has none.
 */
const HEADER = 'x-corelane-runtime';
const VALUE = 'true';
/**
 * A name that somebody else's DNS lets lead here (DNS rebinding) is not among these; `worker` is what `corelane
 * profile` says.
 */
const HOST = /^(127\.0\.0\.1|localhost|\[::1\]|worker)(:[0-9]+)?$/i;
/**
 * A URL with line breaks in it adds headers in a client that does not mind; what the client puts behind the URL is
 * somewhere, too.
 */
const END_OF_REQUEST_LINE = /HTTP\/[0-9.]+$/i;

/**
 * @param text the head of a GET
 * @param hasMore whether bytes have come behind it
 * @returns its target, and whether it comes from somebody who can set headers
 */
function headOf(text, hasMore) {
  const [first, ...lines] = text.split('\n').map((line) => line.replace(/\r$/, ''));
  // An expression that took the blanks away would read a long line anew from each of them.
  const headers = lines.filter((line) => line !== '').map((line) => /^([!-9;-~]+):(.*)$/.exec(line.trimEnd()));
  const all = (name) =>
    headers.filter((header) => header?.[1].toLowerCase() === name).map((header) => header[2].trim());
  const [host, value] = [all('host'), all(HEADER)];
  const isPlain =
    !hasMore &&
    headers.every((header) => header && !END_OF_REQUEST_LINE.test(header[2])) &&
    all('transfer-encoding').length === 0 &&
    all('content-length').every((bytes) => bytes === '0');
  const isMeant = value.length === 1 && value[0] === VALUE && host.length === 1 && HOST.test(host[0]);
  return { target: first.trim().split(' ')[1] ?? '', isMeant: isPlain && isMeant };
}

/** What those are told who have not set the header. */
function howToAsk(pathname, port) {
  return (
    `${pathname} wants a header that no URL can set, and the Host of this machine: ` +
    `curl -H 'X-Corelane-Runtime: true' http://127.0.0.1:${port}${pathname}; or use "npx corelane profile"\n`
  );
}

module.exports = { headOf, howToAsk };
