-- Who is a peer: who has the key. Loaded before pooling.lua. Arguments (haproxy.cfg, lua-load): key=value.

require('peers.keys').start(
  require('settings')('peer-key.lua', { ... }, { 'file', 'overlap-ms' }, { file = true })
)
