/** Breakages of pages that are kept, and of who waits for whom. */
import { exactly, type Mutant, REMOVED } from './mutant.ts';

type Breakage = Omit<Mutant, 'file' | 'breaks'> & { breaks?: Mutant['breaks'] };

const nginx: Breakage[] = [
  {
    name: 'who has waited for a page looks before it is there',
    edits: [[/ +corelane_looks_again on;\n/g, REMOVED]],
    caughtBy: 'cache-herds: so are 20 requests for a page that takes a millisecond',
  },
  {
    name: 'cookies get into a page',
    edits: [[/proxy_set_header Cookie \$corelane_cache_cookie;/g, 'proxy_set_header Cookie $http_cookie;']],
    caughtBy: 'cache: of a client the worker sees',
  },
  {
    name: 'the address of a client gets into a page',
    edits: [
      [/proxy_set_header X-Forwarded-For 0\.0\.0\.0;/g, 'proxy_set_header X-Forwarded-For $http_x_forwarded_for;'],
    ],
    caughtBy: 'cache: of a client the worker sees',
  },
  {
    name: 'any host in a page of this one',
    edits: [[/\$corelane_cache_forwarded_host\\n/g, REMOVED]],
    caughtBy: 'cache: what a worker sees of who asks',
  },
  {
    name: 'the render of a herd of a class is a render like others',
    breaks: 'I1',
    edits: [
      [/proxy_set_header X-Corelane-Served-As \$corelane_served_as;\s+(?=proxy_set_header X-Corelane-Key)/g, REMOVED],
    ],
    caughtBy: 'cache-classes: a herd of a class',
  },
  {
    name: 'every class meets the cache',
    edits: [[/default other;/g, 'default "";']],
    caughtBy: 'cache-classes: a class that says nothing',
  },
  {
    name: 'a render ends with its client',
    edits: [[/proxy_ignore_client_abort on;/g, 'proxy_ignore_client_abort off;']],
    caughtBy: 'cache-herds: a client that leaves',
  },
  {
    name: 'who is given a stale page waits for the new one',
    edits: [[exactly('"|STALE" close;'), REMOVED]],
    caughtBy: 'cache: after its end a page is given out',
  },
  {
    name: 'every cookie that begins like one of analytics counts as one',
    edits: [[exactly('_ga(?:[ct]?_[^=;]*|li|t)?'), '_ga[^=;]*']],
    caughtBy: 'cache: a page that depends on cookies is for those who have none, or none but those of scripts',
  },
  {
    name: 'who looks at drafts gets pages of others',
    edits: [[exactly('__next_preview_data|'), 'no-draft|']],
    caughtBy: 'cache: who looks at drafts gets no page of others',
  },
  {
    name: 'the name of a session is a pattern',
    edits: [[/connect\[\.\]sid/g, 'connect.sid']],
    caughtBy: 'cache: a cookie is named as it is',
  },
  {
    name: 'pages for who is logged in',
    edits: [[/(\$http_upgrade)\$http_authorization/g, '$1']],
    caughtBy: 'cache: Authorization',
  },
];

const haproxy: Breakage[] = [
  {
    name: 'a page for all cannot leave the waiting room for a peer',
    edits: [[/ {2}http-request set-header X-Forwarded-For 0\.0\.0\.0 unless .*\n/g, REMOVED]],
    caughtBy: 'cache-herds: while no worker is up here',
  },
  {
    name: 'the stages of the cache forget the class',
    breaks: 'I1',
    edits: [[/\|served-as/g, REMOVED]],
    caughtBy: 'cache-classes: a herd of a class',
  },
  {
    name: 'what a client says of himself gets into a page',
    edits: [[/ +http-request lua\.show_all_alike.*\n/g, REMOVED]],
    caughtBy: 'cache: of a client the worker sees',
  },
  {
    name: 'a herd of which all are rendered',
    edits: [[/( +server-template herd-.*) maxconn 1\n/g, '$1\n']],
    caughtBy: 'cache-herds: 1,000 requests',
  },
  {
    name: 'nobody knows that a render has died',
    edits: [[/ +http-after-response lua\.herd_unanswered .*\n/g, REMOVED]],
    caughtBy: 'cache-herds: who comes while a page kills its second worker',
  },
  {
    name: 'a page that is personal without what makes it so',
    edits: [[/ +http-response return status 200 hdr X-Accel-Redirect @corelane_alone .*\n/g, REMOVED]],
    caughtBy: 'cache: a page that turns out to be personal',
  },
  {
    name: 'while no worker is up all wait for one',
    edits: [[/ +http-request return .* if \{ req\.hdr\(X-Corelane-Has-Stale\) .*\n/g, REMOVED]],
    caughtBy: 'cache-herds: while no worker is up',
  },
  {
    name: 'a sign-in is rendered for all, and once more for its client',
    edits: [[/ +http-request return .* if excepted\n/g, REMOVED]],
    caughtBy: 'cache: a sign-in is rendered once for each request',
  },
];

const told: Breakage[] = [
  {
    name: 'a page for all is rendered for an address',
    edits: [[/ +http-request del-header X-(?:Forwarded-For|Real-IP) if .*\n/g, REMOVED]],
    caughtBy: 'cache: of a client the worker sees',
  },
  {
    name: 'a client has a herd of his own',
    edits: [[/ +http-request del-header X-Corelane-Class\n/g, REMOVED]],
    caughtBy: 'cache-herds: a client does not leave',
  },
  {
    name: 'a herd does not get to know what a render alone has come to',
    edits: [[/ +http-response lua\.lone_answered .*\n/g, REMOVED]],
    caughtBy: 'cache-herds: a herd whose render fails',
  },
];

const herds: Breakage[] = [
  {
    name: 'a page that fails for all and not alone is an error for all',
    edits: [[exactly("if herd.is_fine_alone then return self:pass(herd, 'error', now) end"), REMOVED]],
    caughtBy: 'cache-herds: a herd whose page fails without what a client sends',
  },
  {
    name: 'failures one after the other',
    edits: [[exactly("if herd.failures < self.settings['tries'] then return end"), 'if herd then return end']],
    caughtBy: 'cache-herds: a herd whose render fails',
  },
  {
    name: 'what became of a herd is soon forgotten',
    edits: [
      [
        exactly('if herd.outcome then return herd, false end'),
        'if herd.outcome and now - herd.changed_ms < 5 then return herd, false end',
      ],
    ],
    caughtBy: 'lua: cache-herds.lua',
  },
  {
    name: 'whoever asks for pages that fail has all places',
    edits: [[exactly('has_no_page and is_empty(herd)'), 'false']],
    caughtBy: 'lua: cache-herds.lua',
  },
  {
    name: 'who still stands in a herd that fails loses its place',
    edits: [[exactly('has_no_page and is_empty(herd)'), 'has_no_page']],
    caughtBy: 'lua: cache-herds.lua',
  },
  {
    name: 'who comes while a page is written begins anew',
    edits: [[exactly('if not self.is_idle(herd.place) then return true end'), REMOVED]],
    caughtBy: 'lua: cache-herds.lua',
  },
];

const judge: Breakage[] = [
  {
    name: 'a redirect for all, for as long as the user has chosen for pages',
    edits: [[exactly('if status ~= 200 then ttl_s = nil end'), REMOVED]],
    caughtBy: 'cache: a redirect',
  },
  {
    name: 'an error for all, though nobody has said so to caches',
    edits: [[exactly("if status >= 400 and control['s-maxage'] == nil then return 'status' end"), REMOVED]],
    caughtBy: 'cache: a page that is not there',
  },
  {
    name: 'what must not be stored for all, if the user has chosen a time',
    edits: [
      [exactly("control['no-store'] ~= nil and not ("), "control['no-store'] ~= nil and not is_chosen and not ("],
    ],
    caughtBy: 'cache: a page that is not to be stored',
  },
  {
    name: 'private pages for all',
    edits: [[exactly("if control['private'] ~= nil then return 'private' end"), REMOVED]],
    caughtBy: 'cache: private',
  },
  {
    name: "pages with somebody's cookie for all",
    edits: [[exactly("if #headers('set-cookie') > 0 then return 'set-cookie' end"), REMOVED]],
    caughtBy: 'cache: Set-Cookie',
  },
  {
    name: 'stale pages against the will of the application',
    edits: [
      [
        exactly("if control['must-revalidate'] ~= nil or control['proxy-revalidate'] ~= nil then return 0 end"),
        REMOVED,
      ],
    ],
    caughtBy: 'cache: where a render fails',
  },
  {
    name: 'pages for a year',
    edits: [[exactly("left_s = math.min(left_s, settings['max-ttl-s'] or TTL_S)"), REMOVED]],
    caughtBy: 'cache: a page for a year',
  },
  {
    name: 'pages are new, whatever age they say',
    edits: [[exactly('or lifetime_s) - age_s'), 'or lifetime_s)']],
    caughtBy: 'cache-rfc9111: what is required',
  },
  {
    name: 'what an application says to its own proxies is not heard',
    edits: [[exactly('math.min(lifetime_s, surrogate_of(headers) or lifetime_s)'), 'lifetime_s']],
    caughtBy: 'cache-rfc9111: nothing that must not come from the cache',
  },
];

const module: Breakage[] = [
  {
    name: 'an error in place of a page of before',
    edits: [[exactly('return NGX_DECLINED;\n  }\n  header'), 'return NGX_OK;\n  }\n  header']],
    caughtBy: 'cache: where a render fails',
  },
  {
    name: 'a page is as old as it was',
    edits: [[exactly('total += ngx_max'), 'total = 0 * ngx_max']],
    caughtBy: 'cache: where a render fails',
  },
];

/** Mutants of Vary and of the memory of routes, by file. */
const depends: [Mutant['file'], Breakage[]][] = [
  [
    'cache/vary.lua',
    [
      {
        name: 'who has a cookie writes the page of those who have none',
        edits: [[exactly("if asked.is_personal then return nil, 'cookie' end"), REMOVED]],
        caughtBy: 'cache: a page that depends on cookies',
      },
      {
        name: 'what a render was shown does not matter if its response does not name it',
        edits: [[exactly('for _, name in ipairs(asked.shown) do add(name) end'), REMOVED]],
        caughtBy: 'cache: variants by Vary',
      },
      {
        name: 'a page is kept though its render was not shown what it depends on',
        edits: [[exactly('if asked.withheld[word] then'), 'if false then']],
        caughtBy: 'cache: variants by Vary',
      },
      {
        name: 'a page by the address of its client',
        edits: [[exactly("'x-forwarded-for', "), REMOVED]],
        caughtBy: 'cache: a page that depends on X-Forwarded-For',
      },
    ],
  ],
  [
    'cache/routes.lua',
    [
      {
        name: 'each page of a route is rendered twice if it is for nobody else',
        edits: [[exactly('if now < known.look_ms then return false end'), REMOVED]],
        caughtBy: 'cache: pages of a route',
      },
    ],
  ],
  [
    'cache.c',
    [
      {
        name: 'a client writes the page of those who have cookies',
        edits: [[exactly('header[i].value.len = 0;'), ';']],
        caughtBy: 'cache: a page that depends on cookies',
      },
    ],
  ],
];

/** Of pages that pods have in common, by the file. */
const shared: [Mutant['file'], Breakage[]][] = [
  [
    'cache.lua',
    [
      {
        name: 'who comes from a peer waits for one that waits for a peer',
        edits: [[exactly("if header(txn, 'X-Corelane-For-Peer') then return here end"), REMOVED]],
        caughtBy: 'cache-shared: two pods that take each other',
      },
      {
        name: 'a page ends by the time that HAProxy has seen',
        edits: [[exactly('wall_ms(txn) // 1000'), 'now // 1000']],
        caughtBy: 'cache: a page is good for as long as it says',
      },
      {
        name: 'each page of a member is rendered twice if it depends on cookies',
        edits: [[exactly('known_routes:passed(personal(asked.route), personal(asked.section), false, now)'), REMOVED]],
        caughtBy:
          'cache: a member has one render for each page of a route that depends on cookies, and guests share theirs',
      },
      {
        name: 'a client gets the error of a render that lacked what it had sent',
        edits: [[exactly("leave_alone(txn, 'error')"), REMOVED]],
        caughtBy: 'cache: a render that fails is done again with all that its client sent',
      },
      {
        name: 'a home that has no page is asked again and again',
        edits: [[exactly(' or herd.has_no_home then'), ' then']],
        caughtBy: 'cache-shared: a render that fails there',
      },
    ],
  ],
  [
    'cache/homes.lua',
    [
      {
        name: 'no home but this pod',
        edits: [[exactly('return owner == nil or owner == own'), 'return true']],
        caughtBy: 'cache-shared: 200 clients at each of 2 pods',
      },
    ],
  ],
  [
    'cache/herds.lua',
    [
      {
        name: 'a home that ends without a word is a failed render',
        edits: [[exactly("own.fillers[token] == 'home'"), 'false']],
        caughtBy: 'lua: cache-herds.lua',
      },
    ],
  ],
  [
    'cache/rendezvous.lua',
    [
      {
        name: 'the first of those that a pod knows is the home',
        edits: [[exactly('math.ult(best_weight, weight)'), 'false']],
        caughtBy: 'lua: cache-rendezvous.lua',
      },
    ],
  ],
  [
    'cache/verdict.lua',
    [
      {
        name: 'a page of a peer for ever',
        edits: [[exactly('math.min(tonumber(digits), now_s + LIFETIME_S_MAX)'), 'tonumber(digits)']],
        caughtBy: 'lua: cache-verdict.lua',
      },
      {
        name: 'whatever a peer says is a page',
        edits: [[exactly("return 'nonsense' end\n  if #headers"), "digits = '9999999999' end\n  if #headers"]],
        caughtBy: 'lua: cache-verdict.lua',
      },
    ],
  ],
  [
    'pooling/answering.lua',
    [
      {
        name: 'pages of two revisions meet',
        edits: [[exactly("~= settings['pages-of'] then return 'other' end"), "== '' then return 'other' end"]],
        caughtBy: 'cache-shared: another revision',
      },
      {
        name: 'a pod that drains is still a home',
        edits: [[exactly("if drain.is_draining() then return 'none' end"), REMOVED]],
        caughtBy: 'cache-shared: draining',
      },
    ],
  ],
  [
    'haproxy.cfg',
    [
      {
        name: 'a page of whoever answers',
        edits: [[/(backend home\n(?: {2}.*\n)*?) {2}http-response lua\.distrust_peer .*\n.*\n/g, '$1']],
        caughtBy: 'cache-shared: no proof',
      },
      {
        name: 'an nginx that does not answer has the pages of others',
        edits: [[/ on-marked-down shutdown-sessions/g, REMOVED]],
        caughtBy: 'cache-shared: nginx frozen',
      },
      {
        name: 'a home that is away is an error',
        edits: [[/ +http-after-response set-status 200 if .*\n/g, REMOVED]],
        caughtBy: 'cache-shared: dies while it renders anew',
      },
    ],
  ],
  [
    'nginx.conf',
    [
      {
        name: 'a home does not say until when',
        edits: [[exactly('proxy_pass_header X-Accel-Expires;'), REMOVED]],
        caughtBy: 'cache-shared: 200 clients at each of 2 pods',
      },
      {
        name: 'any program in the pod gets pages',
        edits: [[exactly('if ($http_x_corelane_page = "")'), 'if ($http_x_corelane_page = "x")']],
        caughtBy: 'cache-shared: a program in the pod',
      },
    ],
  ],
];

const kept: Breakage[] = [
  {
    name: 'a page is kept however large it becomes',
    edits: [[exactly('bytes > (off_t) conf->kept_max'), '0 > (off_t) conf->kept_max']],
    caughtBy: 'cache: what is too large',
  },
  {
    name: 'no page goes for another one',
    edits: [[exactly('(void) cache->path->manager(cache->path->data);'), ';']],
    caughtBy: 'cache: whoever asks for page after page',
  },
  {
    name: 'a condition of one client takes the page of all',
    edits: [[exactly('r->headers_in.if_match = NULL;'), ';']],
    caughtBy: 'cache: a page is kept though',
  },
  {
    name: 'what slow clients have of pages is no matter',
    edits: [[exactly('open_blocks += blocks'), 'open_blocks += 0 * blocks']],
    caughtBy: 'cache: nor does who does not read them',
  },
  {
    name: 'a page is kept whose body begins where no cached file can say',
    edits: [[/u->buffer\.pos - u->buffer\.start > BODY_BEGINS_MAX/g, '0 && $&']],
    caughtBy: 'cache: a page with a head that is too large for a cached file',
  },
];

export const cache: Mutant[] = [
  ...nginx.map((one): Mutant => ({ breaks: 'cache', ...one, file: 'nginx.conf' })),
  ...haproxy.map((one): Mutant => ({ breaks: 'cache', ...one, file: 'haproxy.cfg' })),
  ...told.map((one): Mutant => ({ breaks: 'cache', ...one, file: 'haproxy.cfg' })),
  ...herds.map((one): Mutant => ({ breaks: 'cache', ...one, file: 'cache/herds.lua' })),
  ...judge.map((one): Mutant => ({ breaks: 'cache', ...one, file: 'cache/judge.lua' })),
  ...module.map((one): Mutant => ({ breaks: 'cache', ...one, file: 'cache.c' })),
  ...[...depends, ...shared].flatMap(([file, all]) => all.map((one): Mutant => ({ ...one, breaks: 'cache', file }))),
  {
    name: 'a kept page has a packet for its head',
    breaks: 'cache',
    file: 'whole-files.c',
    edits: [[/is_whole_file\(r\) \? /g, '!is_whole_file(r) ? ']],
    caughtBy: 'cache: its head is in the first packet',
  },
  {
    name: 'early hints take the place of what a cached file begins with',
    breaks: 'cache',
    file: 'interim.c',
    edits: [[exactly('(r->cache != NULL ? r->cache->header_start : 0)'), '0']],
    caughtBy: 'cache: a page that comes after early hints',
  },
  ...kept.map((one): Mutant => ({ breaks: 'cache', ...one, file: 'kept.c' })),
];
