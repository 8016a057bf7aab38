# Images of Corelane. Builds with the classic builder as well as with BuildKit.
ARG DEBIAN_IMAGE=debian:trixie-slim
ARG NODE_IMAGE=node:24-trixie-slim

# ---- programs ----
# What is written in C: the module of nginx, the process 1 of the proxies, the reaper of the worker runtime, what copies
# assets, and what waits for a drain.
FROM ${DEBIAN_IMAGE} AS programs
# Unpacked, not installed: of this stage nothing is kept but what it compiles, and an installation takes three times as
# long. Of nginx-dev nothing but itself: what it depends on (170 packages) is for OpenSSL and modules that are not made.
RUN apt-get update \
    && apt-get install -y --no-install-recommends --download-only gcc libc6-dev make libpcre2-dev zlib1g-dev \
    && cd /var/cache/apt/archives \
    && apt-get download nginx-dev \
    && for package in *.deb; do dpkg-deb --extract "$package" / || exit 1; done \
    && mkdir -p /out/usr/share/corelane/nginx /out/usr/share/corelane/runtime /out/usr/local/bin \
    && dpkg-deb --field nginx-dev_*.deb Version >/out/usr/share/corelane/nginx/version \
    && rm *.deb
ENV CC=gcc
WORKDIR /usr/share/nginx/src
COPY sidecar/nginx/config sidecar/nginx/configure.sh /src/nginx/
RUN bash /src/nginx/configure.sh
COPY sidecar/nginx/ /src/nginx/
RUN make -s -f objs/Makefile modules \
    && strip -o /out/usr/share/corelane/nginx/ngx_http_corelane_module.so objs/ngx_http_corelane_module.so
COPY sidecar/reaper/ /src/reaper/
COPY sidecar/assets/ /src/assets/
COPY sidecar/drain/ /src/drain/
COPY sidecar/entrypoint/ /src/entrypoint/
# All but the last one are static: they run in the user's image, whichever C library that has.
RUN gcc -std=c17 -Os -Wall -Wextra -Werror -static -s -o /out/usr/share/corelane/runtime/reaper /src/reaper/*.c \
    && gcc -std=c17 -Os -Wall -Wextra -Werror -static -s -o /out/usr/share/corelane/runtime/copy-assets /src/assets/*.c \
    && gcc -std=c17 -Os -Wall -Wextra -Werror -static -s -o /out/usr/share/corelane/runtime/wait-for-drain /src/drain/*.c \
    && gcc -std=c17 -Os -Wall -Wextra -Werror -s -o /out/usr/local/bin/corelane-entrypoint /src/entrypoint/*.c

# ---- proxies ----
# HAProxy and nginx as Debian stable ships them.
FROM ${DEBIAN_IMAGE} AS proxies
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends haproxy lua-luaossl nginx \
       libnginx-mod-http-brotli-static \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/* /var/log/* \
       /usr/share/man/* /usr/share/nginx/html /var/www \
       /etc/nginx/sites-enabled /etc/nginx/sites-available /etc/haproxy \
    # The licences of the packages stay with them.
    && find /usr/share/doc -type f ! -name copyright -delete \
    # A namespace may give the containers any user, in group 0 (OpenShift).
    && mkdir -p /etc/corelane /run/corelane \
    && chown 10001:0 /run/corelane && chmod 0775 /run/corelane

# ---- sidecar ----
# Each of the two runs in a container of its own (`args: ["haproxy"]`, `args: ["nginx"]`).
FROM proxies AS sidecar
COPY sidecar/haproxy/ /usr/share/corelane/haproxy/
COPY sidecar/bin/ /usr/local/bin/
COPY sidecar/runtime/ /usr/share/corelane/runtime/
COPY sidecar/assets/mime.types /usr/share/corelane/nginx/
COPY --from=programs /out/ /
# The module was made with the headers of the very nginx that is here, or there is no image: the two stages may have been
# made on different days.
# Modes are set here because COPY --chmod needs BuildKit and a checkout may have lost them.
RUN version=$(cat /usr/share/corelane/nginx/version) && nginx=$(dpkg-query -W -f '${Version}' nginx) \
    && if [ "$version" != "$nginx" ]; then echo "nginx $nginx, but nginx-dev $version: build with --no-cache"; exit 1; fi \
    # The cache has a volume there.
    && mkdir -p /var/cache/corelane && chown 10001:0 /var/cache/corelane && chmod 0775 /var/cache/corelane \
    && chmod 0755 /usr/local/bin/corelane-* && chmod -R u=rw,go=r,a+X /usr/share/corelane/haproxy \
    && chmod 0644 /usr/share/corelane/runtime/*.cjs /usr/share/corelane/nginx/mime.types \
    && chmod -R u=rwX,go=rX /usr/share/corelane/runtime/dist
# Numeric, so that kubelet can verify runAsNonRoot where the pod names no user.
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
# Each of Node's threads would have a heap of glibc's of its own, in which would stay what lists have taken once: pieces
# of answers, of 64 kB. With 2,000 pods that was 226 MiB of RSS instead of 170.
ENV NODE_OPTIONS="--max-semi-space-size=4 --max-old-space-size=192" MALLOC_ARENA_MAX=1 \
  MALLOC_MMAP_THRESHOLD_=32768
USER 10001:10001
EXPOSE 8080
ENTRYPOINT ["node", "/app/main.mjs"]
