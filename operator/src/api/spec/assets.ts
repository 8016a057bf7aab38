/** Fields on files of the application that nginx serves by itself. */
import { z } from 'zod';
import { duration, quantity } from '../scalars.ts';

const ASSETS_MAX = 16;
const MUTABLE_MAX = 8;
const HEADERS_MAX = 8;

/** A folder of the URL, the whole site included, in plain characters: it stands in nginx.conf as it is (I7). */
const URL_FOLDER = '^/([.]*[A-Za-z0-9_~-][A-Za-z0-9._~-]*/)*$';
const URL_FOLDER_MESSAGE =
  'must be a path such as /_next/static/: it begins and ends with "/", has letters, digits and . _ ~ - / only, and no part that is empty or consists of dots';

/** Each part has something else than dots; "*" is a part of its own, once. */
const FOLDER_PART = '([.]*[A-Za-z0-9_@+~-][A-Za-z0-9._@+~-]*)';
const IMAGE_FOLDER = `^/?(${FOLDER_PART}/)*(${FOLDER_PART}|[*])(/${FOLDER_PART})*/?$`;
const IMAGE_FOLDER_MESSAGE =
  'must be a folder of the image such as /app/.next/static, or .next/static below its WORKDIR: letters, digits and . _ @ + ~ - / only, no part that consists of dots; one part may be "*"';

const FILE = '^(/[.]*[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$';
const FILE_MESSAGE =
  'must be the path of a file such as /_nuxt/builds/latest.json: it begins with "/", has letters, digits and . _ ~ - / only, and no part that is empty or consists of dots';

const BASE_PATH_MESSAGE =
  'must be a path such as /shop: it begins with "/" and does not end with one, has letters, digits and . _ ~ - / only, and no part that is empty or consists of dots';

/** Headers that nginx makes itself, or that end a response somewhere else than it does. */
const OWN_HEADERS =
  'accept-ranges|cache-control|connection|content-(encoding|length|range|type)|date|etag|expires|keep-alive|last-modified|location|server|set-cookie|status|te|trailer|transfer-encoding|upgrade|vary';
const HEADER_NAME = `^[A-Za-z][A-Za-z0-9-]{0,63}$`;
/** Printable, and nothing that ends a quoted word of nginx.conf or begins a variable in it. */
const HEADER_VALUE = '^[A-Za-z0-9 .,:=*/_+()<>?&@!~-]{1,256}$';
const HEADERS_MESSAGE =
  'must be names of headers with values of letters, digits, blanks and . , : = * / _ + ( ) < > ? & @ ! ~ - only; Cache-Control, Content-Type and others that nginx makes itself are none of them, nor those that begin with X-Corelane- or X-Accel-';

function isHeaders(headers: Record<string, string>): boolean {
  const own = new RegExp(`^(${OWN_HEADERS}|x-(accel|corelane)-.*)$`, 'i');
  return Object.entries(headers).every(
    ([name, value]) => new RegExp(HEADER_NAME).test(name) && !own.test(name) && new RegExp(HEADER_VALUE).test(value),
  );
}

/** A string field whose pattern zod and the API server check. */
function matching(pattern: string, message: string, max: number) {
  return z
    .string()
    .min(1, message)
    .max(max)
    .regex(new RegExp(pattern), message)
    .meta({ 'x-kubernetes-validations': [{ rule: `self.matches('${pattern}')`, message }] });
}

const entry = z.strictObject({
  path: matching(URL_FOLDER, URL_FOLDER_MESSAGE, 128).describe(
    'URLs that begin with this: a folder such as /_next/static/, with the base path of the application if it has one. "/" is the whole site. Of two that fit the longer one counts.',
  ),
  from: matching(IMAGE_FOLDER, IMAGE_FOLDER_MESSAGE, 256).describe(
    'The folder of the worker\'s image with the files, as they stand below `path`. A relative one is below the image\'s WORKDIR (workingDir of the worker). One part may be "*" for the one folder that is there (dist/*/browser).',
  ),
  immutable: z
    .boolean()
    .default(false)
    .describe(
      'Whether a file never changes under its name, because a hash is part of it. Clients keep it for a year (Cache-Control: public, max-age=31536000, immutable). During a rollout a pod that has not got the file asks a pod of another revision (docs/assets.md).',
    ),
  hashedNames: z
    .boolean()
    .default(false)
    .describe(
      'Whether only files are meant whose names end with a hash of eight characters, as esbuild and Angular make them (main-5Q3ZTXKB.js). For hashed files in a folder with others.',
    ),
  mutable: z
    .array(matching(FILE, FILE_MESSAGE, 128))
    .max(MUTABLE_MAX)
    .default([])
    .describe(
      'Paths of files below `path` that change under their names although `immutable` is set: /_nuxt/builds/latest.json.',
    ),
  maxAge: duration({ min: '0s', max: '8760h' })
    .default('0s')
    .describe(
      'How long clients may keep a file that is not immutable without asking again (Cache-Control: public, max-age=). Asked again they get 304 if it is the same.',
    ),
  headers: z
    .record(z.string().max(64), z.string().max(256))
    .refine(isHeaders, HEADERS_MESSAGE)
    .default({})
    .meta({
      maxProperties: HEADERS_MAX,
      'x-kubernetes-validations': [
        {
          rule: `self.all(k, k.matches('${HEADER_NAME}') && !k.matches('(?i)^(${OWN_HEADERS}|x-(accel|corelane)-.*)$') && self[k].matches('${HEADER_VALUE}'))`,
          message: HEADERS_MESSAGE,
        },
      ],
    })
    .describe(
      'Further headers of these files, such as Access-Control-Allow-Origin: the application does not see the request, so it cannot add its own.',
    ),
  missing: z
    .enum(['Worker', 'NotFound'])
    .default('Worker')
    .describe(
      'Who answers for a file that is not there: a worker, as for any page, or nginx with 404. NotFound costs no render slot, whatever anybody asks for.',
    ),
});

export type Asset = z.output<typeof entry>;

export const assets = z
  .array(entry)
  .max(ASSETS_MAX)
  .optional()
  .describe(
    "Files of the application that nginx serves from a folder of the worker's image, without a worker: /_next/static/ for example (docs/assets.md). What is not there goes to a worker. Those of `framework` unless given; none with an empty list.",
  );

export const framework = z
  .enum(['Next', 'Nuxt', 'SvelteKit', 'ReactRouter', 'Astro', 'Angular'])
  .optional()
  .describe(
    'The framework that the application is built with. It stands for `assets` (the folder with hashed names), for `classes` (image: pictures in another size; data: requests for the data of a page, with concurrency: Auto), for `concurrency: Auto`, for `priority` (pages before prefetches, with Next), for the headers that the cache must look at, and for variables of the workers that it needs. A field of yours takes the place of what it stands for (docs/frameworks/README.md has the table).',
  );

export const basePath = matching(FILE, BASE_PATH_MESSAGE, 96)
  .optional()
  .describe(
    "The path below which the application of `framework` is served, such as /shop: Next's basePath, Nuxt's app.baseURL, SvelteKit's paths.base, Vite's base (React Router), Astro's base, Angular's base href. The paths that `framework` stands for begin with it. The root of the site unless given.",
  );

/** How the files come to nginx: part of `sidecar`. */
export const assetFiles = z
  .strictObject({
    source: z
      .enum(['Copy', 'ImageVolume'])
      .default('Copy')
      .describe(
        "How nginx gets the files of `assets`. Copy: an init container of the worker's image copies them into a volume. ImageVolume: nginx mounts the image; this needs Kubernetes 1.35 (or the feature gate ImageVolume) and containerd 2.1 or CRI-O 1.33 on every node.",
      ),
    sizeLimit: quantity('1Mi')
      .default('512Mi')
      .describe(
        'Most that copied assets may take of the disk. A pod whose image has more does not start, and says so.',
      ),
  })
  .prefault({})
  .describe('How nginx gets the files of `assets`.');
