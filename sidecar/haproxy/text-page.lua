-- A page of plain text, as what an applet answers.
return function(applet, text)
  applet:set_status(200)
  applet:add_header('content-type', 'text/plain')
  applet:add_header('cache-control', 'no-store')
  applet:add_header('content-length', #text)
  applet:start_response()
  applet:send(text)
end
