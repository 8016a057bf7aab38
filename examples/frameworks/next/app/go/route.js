// The URL of the request has the address on which Next listens; behind Corelane the browser stays on its site.
export const GET = (request) => Response.redirect(new URL('/', request.url));
