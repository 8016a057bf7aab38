-- What HAProxy 3.0 cannot do by itself: begin with all workers down, wait for a worker, see when a drain is over, ask
-- a supervisor. Arguments (haproxy.cfg, lua-load): key=number, times in milliseconds; first-port and
-- without-slot-max are 0 where workers have no supervisor; revision is a text.

local settings = require('settings')('corelane.lua', { ... }, {
  'workers', 'first-port', 'drain-delay-ms', 'queue-timeout-ms', 'revision', 'without-slot-max',
}, { revision = true })

require('supervisors').start(settings)
require('without-slot').start(settings)
require('first-checks')
require('drain').start(settings)
require('resting').start(settings)
require('waiting-room').start(settings)
