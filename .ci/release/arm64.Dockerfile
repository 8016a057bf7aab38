# The images for arm64, made on an amd64 machine that cannot run arm64 programs (no binfmt): packages are unpacked and C
# is cross-compiled, but no arm64 program runs. For tests: what is published is built by ../../Dockerfile on an arm64
# machine. arm64.sh makes the context.
ARG DEBIAN_IMAGE=debian:trixie-slim

# ---- programs ----
# As in ../../Dockerfile, and a compiler for arm64.
FROM ${DEBIAN_IMAGE} AS programs
RUN apt-get update \
    && apt-get install -y --no-install-recommends --download-only \
       gcc libc6-dev make libpcre2-dev zlib1g-dev gcc-aarch64-linux-gnu libc6-dev-arm64-cross \
    && cd /var/cache/apt/archives \
    && apt-get download nginx-dev \
    && for package in *.deb; do dpkg-deb --extract "$package" / || exit 1; done \
    && rm *.deb
COPY sidecar/nginx/ /src/nginx/
WORKDIR /usr/share/nginx/src
# nginx's configure runs what it compiles, so it asks about this machine. Both have the same word sizes and system calls;
# nginx compares what it was made with when it loads a module. Headers that are the machine's own come last.
RUN CC=gcc bash /src/nginx/configure.sh
ENV CC=aarch64-linux-gnu-gcc
RUN mkdir /out \
    && make -s -f objs/Makefile modules CC="$CC -idirafter /usr/include/x86_64-linux-gnu" LINK=$CC \
    && aarch64-linux-gnu-strip -o /out/ngx_http_corelane_module.so objs/ngx_http_corelane_module.so
COPY sidecar/reaper/ /src/reaper/
COPY sidecar/assets/ /src/assets/
COPY sidecar/drain/ /src/drain/
COPY sidecar/entrypoint/ /src/entrypoint/
RUN $CC -std=c17 -Os -Wall -Wextra -Werror -static -s -o /out/reaper /src/reaper/*.c \
    && $CC -std=c17 -Os -Wall -Wextra -Werror -static -s -o /out/copy-assets /src/assets/*.c \
    && $CC -std=c17 -Os -Wall -Wextra -Werror -static -s -o /out/wait-for-drain /src/drain/*.c \
    && $CC -std=c17 -Os -Wall -Wextra -Werror -s -o /out/corelane-entrypoint /src/entrypoint/*.c

# ---- packages ----
# Debian's packages for arm64 with all that they need, downloaded by apt (which checks them) and unpacked. Their scripts
# do not run; what those would have made, and something here needs, is made below.
FROM ${DEBIAN_IMAGE} AS packages
COPY unpack.sh /
RUN apt-get update
RUN sh /unpack.sh /operator libstdc++6 libgcc-s1 libatomic1
RUN sh /unpack.sh /sidecar haproxy lua-luaossl nginx libnginx-mod-http-brotli-static \
    && rm -rf /sidecar/usr/share/nginx/html /sidecar/var/www /sidecar/etc/nginx/sites-* /sidecar/etc/haproxy

# ---- sidecar ----
FROM scratch AS sidecar
COPY --from=packages /sidecar/ /
COPY empty/ /etc/corelane/
COPY --chown=10001:10001 empty/ /run/corelane/
COPY sidecar/haproxy/ /usr/share/corelane/haproxy/
COPY sidecar/bin/ /usr/local/bin/
COPY sidecar/runtime/ /usr/share/corelane/runtime/
COPY sidecar/assets/mime.types /usr/share/corelane/nginx/
COPY --from=programs /out/reaper /out/copy-assets /out/wait-for-drain /usr/share/corelane/runtime/
COPY --from=programs /out/corelane-entrypoint /usr/local/bin/
COPY --from=programs /out/ngx_http_corelane_module.so /usr/share/corelane/nginx/
USER 10001:10001
EXPOSE 8998 8999 9000 9001
ENTRYPOINT ["/usr/local/bin/corelane-entrypoint"]

# ---- operator ----
FROM scratch AS operator
COPY --from=packages /operator/ /
COPY node /usr/local/bin/node
COPY operator/dist/main.mjs operator/dist/main.cdx.json /app/
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin NODE_OPTIONS="--max-semi-space-size=4 --max-old-space-size=192" MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=32768
USER 10001:10001
EXPOSE 8080
ENTRYPOINT ["node", "/app/main.mjs"]
