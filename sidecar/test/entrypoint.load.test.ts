/** More of what nobody would write into pod.env, a container for each. Here because it takes long. */
import { prepare } from '../../e2e/harness/engine/docker.ts';
import { changed, complaint, POD_ENV } from './entrypoint.ts';

beforeAll(prepare);

test.each([
  ['a blank', 'CORELANE_X=a b', /line 6: not CORELANE_NAME=VALUE/],
  ['another end of the line', 'CORELANE_X=1;reboot', /line 6: not CORELANE_NAME=VALUE/],
  ['a name that is none', 'CORELANE_a=1', /line 6: not CORELANE_NAME=VALUE/],
  ['no value', 'CORELANE_X', /line 6: not CORELANE_NAME=VALUE/],
  ['a carriage return', 'CORELANE_X=1\r', /line 6: not CORELANE_NAME=VALUE/],
  ['bytes', '\u0000\u00ff', /line 6: not CORELANE_NAME=VALUE/],
])('a pod.env with %s is refused', async (_what, line, expected) => {
  expect(await complaint(`${POD_ENV}${line}\n`, 'nginx')).toMatch(expected);
});

test.each(['0', '09000', '99999999999999999999'])('port "%s" is refused', async (port) => {
  const refusal = (name: string) => `${name} in /etc/corelane/pod.env must be a whole number from 1 to 65535`;
  expect(await complaint(changed('CORELANE_HTTP_PORT', port), 'nginx')).toBe(refusal('CORELANE_HTTP_PORT'));
  expect(await complaint(changed('CORELANE_HEALTH_PORT', port), 'haproxy')).toBe(refusal('CORELANE_HEALTH_PORT'));
});
