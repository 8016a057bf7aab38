/**
 * traceparent and tracestate (W3C Trace Context, level 1), and X-Request-Start: what a worker gets of them. What is not
 * valid is nobody's; docs/tracing.md has the rules.
 */
import { block, given, type Lines, when } from '../directives.ts';
import type { DataPlaneModel } from '../model/index.ts';
import type { Tracing } from '../model/tracing.ts';
import { percent, whole } from '../safe.ts';

/** Of version 00 nothing else may follow, of a later one what we do not know; ff is none. */
const VERSION = '(?:00(?=.{53}$)|(?!00|ff)[0-9a-f]{2}(?=.{53}(?:-|$)))';
/** Ids of zeros are none. */
const IDS = '(?<corelane_trace>(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})';
/** Of the flags level 1 has one, "sampled", and the others are passed on as 0. */
const parent = (lastDigits: string, flags: string) =>
  `"~^${VERSION}-${IDS}-[0-9a-f][${lastDigits}]" "00-$corelane_trace-${flags}";`;
/** As nginx writes it; as Heroku does, in milliseconds; as Apache does, in microseconds. */
const START = '(?:t=)?(?<corelane_start_s>[0-9]{10})\\.?(?<corelane_start_ms>[0-9]{3})(?:[0-9]{3})?';

/** Sampled requests of a second that are told of: clients mark theirs as they like. */
const SPANS_MAX = 200;

/** What is not sampled has none: the program stays below whoever was there before. */
const OWN_SPAN: Lines = [
  "# A worker's span is below the one of its render.",
  block(
    'map $corelane_arrived $corelane_traceparent',
    'default $corelane_arrived;',
    '"~^(?<corelane_of_trace>00-[0-9a-f]{32}-).*-01$" "$corelane_of_trace$corelane_new_span-01";',
  ),
];

function newTraces({ flags, sampledPercent, hasSpans }: Tracing): Lines {
  return [
    given(sampledPercent, (value) =>
      block(
        'split_clients $corelane_new_trace $corelane_new_flags',
        `${percent(value, 'tracing.samplingPercent')} 01;`,
        '* 00;',
      ),
    ),
    block(
      `map $corelane_parent ${hasSpans ? '$corelane_arrived' : '$corelane_traceparent'}`,
      'default $corelane_parent;',
      `"" "00-$corelane_new_trace-${flags ?? '$corelane_new_flags'}";`,
    ),
    when(hasSpans, OWN_SPAN),
  ];
}

/** The variables. */
export function traces({ accessLog, ports, tracing }: DataPlaneModel): Lines {
  return [
    '# A traceparent that is none ends here: whoever gets none begins a trace of his own. (W3C Trace Context, level 1)',
    block('map $http_traceparent $corelane_parent', parent('13579bdf', '01'), parent('02468ace', '00')),
    given(tracing, newTraces),
    when(
      tracing?.hasSpans,
      '# Our module: at the end of a sampled request it tells of it, to a thread beside the supervisor of worker-0. Of so many a second.',
      `corelane_spans_port ${whole(ports.spans, 'port')};`,
      `corelane_spans_max ${SPANS_MAX};`,
    ),
    when(tracing === undefined, block('map $corelane_parent $corelane_traceparent', 'default $corelane_parent;')),
    '# It belongs to a trace that goes on. This long everybody has to take it.',
    block(
      'map "$corelane_parent|$http_tracestate" $corelane_tracestate',
      '"~^[0-9a-f-]{55}\\|[ -~]{1,512}$" $http_tracestate;',
    ),
    when(
      accessLog.hasLines,
      block(
        'map $corelane_traceparent $corelane_trace_id',
        '"~^00-(?<corelane_trace_hex>[0-9a-f]{32})-" $corelane_trace_hex;',
      ),
    ),
    '# When the first byte was here, or what a trusted proxy says of it. In seconds: whoever reads it takes that.',
    block(
      'map "$corelane_untrusted|$http_x_request_start" $corelane_request_start',
      'volatile;',
      'default "t=$corelane_began";',
      `"~^\\|${START}$" "t=$corelane_start_s.$corelane_start_ms";`,
    ),
  ];
}

/** Headers of every request to HAProxy. */
export const TELLS_TRACE = tellsTrace('$corelane_request_start');

/** The same for a request of a peer, whose nginx has validated X-Request-Start. */
export const TELLS_TRACE_OF_PEER = tellsTrace('$http_x_request_start');

function tellsTrace(requestStart: string): Lines {
  return ['proxy_set_header traceparent $corelane_traceparent;', `proxy_set_header X-Request-Start ${requestStart};`];
}

/** Of one whose response is for nobody else. */
export const TELLS_STATE = 'proxy_set_header tracestate $corelane_tracestate;';
/** A stranger's text gets into no page that others are given. */
export const HIDES_STATE = 'proxy_set_header tracestate "";';
