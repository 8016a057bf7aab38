// tiny-registry.mjs NAME VERSION ARCHIVE: an npm registry of one package on loopback; prints its address. It serves
// ARCHIVE as it is at that moment, and says that this is what it should be.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

const [name, version, archive] = process.argv.slice(2);

const server = createServer((request, response) => {
  const bytes = readFileSync(archive);
  if (request.url === `/${name}/-/${name}-${version}.tgz`) {
    response.end(bytes);
  } else if (request.url === `/${name}`) {
    const dist = {
      tarball: `${address()}/${name}/-/${name}-${version}.tgz`,
      integrity: `sha512-${createHash('sha512').update(bytes).digest('base64')}`,
    };
    const versions = { [version]: { name, version, bin: { [name]: `bin/${name}` }, dist } };
    response.end(JSON.stringify({ name, 'dist-tags': { latest: version }, versions }));
  } else {
    response.writeHead(404).end();
  }
});
const address = () => `http://127.0.0.1:${server.address().port}`;
server.listen(0, '127.0.0.1', () => console.log(address()));
