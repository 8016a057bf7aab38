# configure.sh: prepares the build of the module in nginx-dev's sources (the current folder), as Debian has made nginx.
# Two flags are left out, for they want OpenSSL's headers. --with-compat keeps all structures as they are with them: the
# code of the module is the same byte for byte, and so is the signature that nginx compares when it loads it.
set -e
. ./conf_flags
flags=()
for flag in "${NGX_CONF_FLAGS[@]}"; do
  case $flag in
    --with-http_ssl_module | --with-http_v3_module) ;;
    *) flags+=("$flag") ;;
  esac
done
./configure "${flags[@]}" --with-cc-opt='-O2 -Wall -Wextra -Werror -Wno-unused-parameter' \
  --add-dynamic-module="$(dirname "$0")" >objs.log || { cat objs.log; exit 1; }
