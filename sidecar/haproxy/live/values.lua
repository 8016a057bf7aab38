-- The live settings by name, always those that count: `local live = require('live.values')`, `live['asks-max']`. Who
-- keeps a value, and does not look each time, misses the next one.
return require('live.document').defaults()
