/** Breakages of what a worker gets of a trace, and of when a request came. */
import { type Mutant, REMOVED } from './mutant.ts';

const breaks = 'traces';
const none = 'tracing: traceparent one that is none ends, and takes tracestate with it: ';
const valid = 'tracing: traceparent a valid one goes on, as version 00: ';
const neighbour = 'tracing: other pods no neighbour breaks a trace, and no request is lost by it: ';
const made = 'tracing: traceparent with spec.tracing each request without one gets its own';

const nginx: Omit<Mutant, 'file' | 'breaks'>[] = [
  {
    name: 'version ff is one',
    edits: [[/\(\?!00\|ff\)/g, '(?!00)']],
    caughtBy: `${none}version ff`,
  },
  {
    name: 'a trace of zeros is one',
    edits: [[/\(\?!0\{32\}\)/g, REMOVED]],
    caughtBy: `${none}a trace of zeros`,
  },
  {
    name: 'a parent of zeros is one',
    edits: [[/\(\?!0\{16\}\)/g, REMOVED]],
    caughtBy: `${none}a parent of zeros`,
  },
  {
    name: 'upper case is as good',
    edits: [[/"~\^\(\?:00\(\?=/g, '"~*^(?:00(?=']],
    caughtBy: `${none}upper case`,
  },
  {
    name: 'version 00 may have more in it',
    edits: [[/00\(\?=\.\{53\}\$\)/g, '00(?=.{53})']],
    caughtBy: `${none}more after version 00`,
  },
  {
    name: 'a later version ends the trace',
    edits: [[/\|\(\?!00\|ff\)\[0-9a-f\]\{2\}\(\?=\.\{53\}\(\?:-\|\$\)\)/g, REMOVED]],
    caughtBy: `${valid}a later version`,
  },
  {
    name: 'what is not sampled is sampled',
    edits: [[/"00-\$corelane_trace-00"/g, '"00-$corelane_trace-01"']],
    caughtBy: `${valid}not sampled`,
  },
  {
    name: 'tracestate goes on without a trace',
    edits: [[/\{55\}\\\|/g, '{0,55}\\|']],
    caughtBy: `${none}version ff`,
  },
  {
    name: 'tracestate has no end',
    edits: [[/\[ -~\]\{1,512\}\$/g, '[ -~]{1,9000}$']],
    caughtBy: 'tracing: tracestate more',
  },
  {
    name: 'a trace tells by which name HAProxy knows the request',
    edits: [[/"00-\$corelane_new_trace-/g, '"00-$request_id-b7ad6b7169203331-']],
    caughtBy: made,
  },
  {
    name: 'new traces are made unasked',
    edits: [
      [
        /(map \$corelane_parent \$corelane_traceparent \{\n +default \$corelane_parent;\n)( +\})/g,
        '$1"" "00-$corelane_new_trace-01";\n$2',
      ],
    ],
    caughtBy: 'tracing: traceparent without one, and without spec.tracing',
  },
  {
    name: 'all new traces are sampled',
    edits: [[/-\$corelane_new_flags"/g, '-01"']],
    caughtBy: 'tracing: traceparent samplingPercent marks some',
  },
  {
    name: 'the log has another trace than the worker',
    edits: [[/"trace_id":"\$corelane_trace_id"/g, '"trace_id":"$request_id"']],
    caughtBy: made,
  },
  {
    name: 'any client says when it came',
    edits: [[/"~\^\\\|\(\?:t=\)\?/g, '"~^1?\\|(?:t=)?']],
    caughtBy: 'tracing: X-Request-Start of a stranger nothing is believed',
  },
  {
    name: 'nobody knows better when it came',
    edits: [[/ +"~\^\\\|\(\?:t=\)\?.*\n/g, REMOVED]],
    caughtBy: 'tracing: X-Request-Start a trusted proxy knows better when it came: Heroku',
  },
];

const haproxy: Omit<Mutant, 'file' | 'breaks'>[] = [
  {
    name: 'a trace that another pod hands over is one',
    edits: [[/ +http-request del-header traceparent .*\n/g, REMOVED]],
    caughtBy: `${neighbour}version ff`,
  },
  {
    name: 'a tracestate that another pod hands over is one',
    edits: [[/ +http-request del-header tracestate .*\n/g, REMOVED]],
    caughtBy: `${neighbour}too long a state`,
  },
  {
    name: 'a time that another pod hands over is one',
    edits: [[/ +http-request del-header X-Request-Start .*\n/g, REMOVED]],
    caughtBy: 'tracing: other pods nor a time: letters',
  },
  {
    name: 'who renders a page for many is not told when its request came',
    edits: [[/,x-request-start(?= )/g, REMOVED]],
    caughtBy: 'tracing: tracestate no page that others are given',
  },
];

const told = 'spans: nginx tells of a sampled request';
const unsampled = 'spans: nginx tells nothing of what is not sampled';

const spans: Omit<Mutant, 'file' | 'breaks'>[] = [
  {
    name: 'what is not sampled is told',
    edits: [[/ \|\| sent\.data\[sent\.len - 1\] != '1'/g, REMOVED]],
    caughtBy: unsampled,
  },
  {
    name: 'a query is told',
    edits: [[/CORELANE_LOG_NONE/g, 'CORELANE_LOG_FULL']],
    caughtBy: told,
  },
  {
    name: 'pings are told',
    edits: [[/ && conf->counts < CORELANE_COUNT_NOTHING/g, ' && conf != NULL']],
    caughtBy: 'spans: nginx tells nothing of pings',
  },
  {
    name: 'a page that is rendered for others is not told',
    edits: [[/!is_of_request\(r\) && ctx != NULL/g, 'ctx == NULL']],
    caughtBy: 'spans: nginx tells of a page that is rendered for others',
  },
  {
    name: 'a flood of sampled requests is told',
    edits: [[/return in_second\+\+ >= \(ngx_uint_t\) conf->spans_max;/g, 'return conf == NULL;']],
    caughtBy: 'spans: it costs nobody anything that all are sampled',
  },
  {
    name: 'what nobody has heard counts as told',
    edits: [[/untold\+\+/g, 'told++']],
    caughtBy: 'spans: it costs nobody anything that nobody hears it',
  },
  {
    name: 'records have no numbers',
    edits: [[/"render", told \+ untold\)/g, '"render", limited)']],
    caughtBy: 'spans: nginx tells each with its number',
  },
  {
    name: 'a long path is told in full',
    edits: [[/#define TEXT_MAX 512/g, '#define TEXT_MAX 8192']],
    caughtBy: 'spans: nginx tells of a path that is long',
  },
  {
    name: 'a request that HAProxy leads back to nginx counts as a render',
    edits: [[/ && !is_led_back\(r\)/g, ' && (!is_led_back(r) || 1)']],
    caughtBy: 'spans: nginx tells of a page that is rendered for others',
  },
];

export const tracing: Mutant[] = [
  ...spans.map((mutant): Mutant => ({ ...mutant, breaks, file: 'spans.c' })),
  {
    name: 'a worker is below the client, not below its render',
    breaks,
    file: 'nginx.conf',
    edits: [[/ +"~\^\(\?<corelane_of_trace>.*\n/g, REMOVED]],
    caughtBy: told,
  },
  {
    name: 'what is not sampled is below a span that nobody tells of',
    breaks,
    file: 'nginx.conf',
    edits: [
      [/\.\*-01\$" "\$corelane_of_trace\$corelane_new_span-01"/g, '.*$" "$corelane_of_trace$corelane_new_span-00"'],
    ],
    caughtBy: unsampled,
  },
  {
    name: 'the program has the key of who gets the spans',
    breaks,
    file: 'child.cjs',
    edits: [[/CORELANE_SPANS_HEADERS: undefined/g, 'CORELANE_SPANS: undefined']],
    caughtBy: 'spans: it costs nobody anything the headers of the Secret',
  },
  ...nginx.map((mutant): Mutant => ({ ...mutant, breaks, file: 'nginx.conf' })),
  ...haproxy.map((mutant): Mutant => ({ ...mutant, breaks, file: 'haproxy.cfg' })),
  {
    name: 'all new traces are one',
    breaks,
    file: 'trace.c',
    edits: [[/getrandom\(bytes, sizeof\(bytes\), 0\) != sizeof\(bytes\)/g, 'memset(bytes, 7, sizeof(bytes)) == NULL']],
    caughtBy: made,
  },
  {
    name: 'a request comes when its body is there',
    breaks,
    file: 'trace.c',
    edits: [[/r->start_sec, r->start_msec/g, 'ngx_time(), ngx_timeofday()->msec']],
    caughtBy: 'tracing: X-Request-Start it is when the request came',
  },
];
