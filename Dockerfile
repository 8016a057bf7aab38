# Images of Corelane. Builds with the classic builder as well as with BuildKit.
ARG DEBIAN_IMAGE=debian:trixie-slim
ARG NODE_IMAGE=node:24-trixie-slim

# ---- programs ----
# The process 1 of the proxies, and the reaper of the worker runtime. That one is static: it runs in the user's image,
# whichever C library that has.
FROM ${DEBIAN_IMAGE} AS programs
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends gcc libc6-dev
COPY sidecar/reaper/ /src/reaper/
RUN gcc -std=c17 -Os -Wall -Wextra -Werror -static -s -o /reaper /src/reaper/*.c
COPY sidecar/entrypoint/ /src/entrypoint/
RUN gcc -std=c17 -Os -Wall -Wextra -Werror -s -o /corelane-entrypoint /src/entrypoint/*.c

# ---- proxies ----
# HAProxy and nginx as Debian stable ships them.
FROM ${DEBIAN_IMAGE} AS proxies
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends haproxy lua-luaossl nginx \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/* /var/log/* \
       /usr/share/man/* /usr/share/nginx/html /var/www \
       /etc/nginx/sites-enabled /etc/nginx/sites-available /etc/haproxy \
    # The licences of the packages stay with them.
    && find /usr/share/doc -type f ! -name copyright -delete \
    && mkdir -p /etc/corelane /run/corelane \
    && chown 10001:10001 /run/corelane

# ---- nginx module ----
# Made with the headers of the very nginx that is in the image: it refuses a module for any other one.
FROM proxies AS nginx-module
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
       gcc libc6-dev make "nginx-dev=$(dpkg-query -W -f '${Version}' nginx)"
COPY sidecar/nginx/ /src/
WORKDIR /usr/share/nginx/src
RUN bash -c '. ./conf_flags && ./configure "${NGX_CONF_FLAGS[@]}" --with-cc-opt="-O2 -Wall -Wextra -Werror -Wno-unused-parameter" --add-dynamic-module=/src' >/dev/null \
    && make -s -f objs/Makefile modules \
    && strip objs/ngx_http_corelane_module.so

# ---- sidecar ----
# Each of the two runs in a container of its own (`args: ["haproxy"]`, `args: ["nginx"]`).
FROM proxies AS sidecar
COPY sidecar/haproxy/ /usr/share/corelane/haproxy/
COPY sidecar/bin/ /usr/local/bin/
COPY sidecar/runtime/ /usr/share/corelane/runtime/
COPY --from=programs /reaper /usr/share/corelane/runtime/reaper
COPY --from=programs /corelane-entrypoint /usr/local/bin/
COPY --from=nginx-module /usr/share/nginx/src/objs/ngx_http_corelane_module.so /usr/share/corelane/nginx/
# Modes are set here because COPY --chmod needs BuildKit and a checkout may have lost them.
RUN chmod 0755 /usr/local/bin/corelane-* && chmod -R u=rw,go=r,a+X /usr/share/corelane/haproxy \
    && chmod 0644 /usr/share/corelane/runtime/*.cjs
# Numeric, so that kubelet can verify runAsNonRoot.
USER 10001:10001
EXPOSE 8998 8999 9000 9001
ENTRYPOINT ["/usr/local/bin/corelane-entrypoint"]

# ---- operator ----
# The bundle is made outside (`make build`): it needs no network here, and tests run the very same file.
FROM ${NODE_IMAGE} AS node

FROM ${DEBIAN_IMAGE} AS operator
COPY --from=node /usr/local/bin/node /usr/local/bin/node
# main.cdx.json says which packages are in it: scanners read such files.
COPY operator/dist/main.mjs operator/dist/main.cdx.json /app/
# A small young generation: the operator keeps little, and 160 MiB is its memory request.
ENV NODE_OPTIONS="--max-semi-space-size=4 --max-old-space-size=192"
USER 10001:10001
EXPOSE 8080
ENTRYPOINT ["node", "/app/main.mjs"]
