-- Whether a browser shows the answer as a page. Others throw a cookie away, or would share it.
return function(txn)
  if txn.f:method() ~= 'GET' then return false end
  local mode = txn.f:req_fhdr('Sec-Fetch-Mode')
  if mode then return mode == 'navigate' end
  return (txn.f:req_fhdr('Accept') or ''):find('text/html', 1, true) ~= nil
end
