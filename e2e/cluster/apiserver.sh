#!/usr/bin/env bash
# apiserver.sh COMMAND [OPTION]...: a real API server with its own etcd, for
# integration tests that need no nodes. Several can run beside each other.
#
#   up               start it; prints the path of the admin kubeconfig
#   down             remove it (--all: every one of this clone)
#   kubeconfig       print the path of a kubeconfig (--user admin|operator)
#   stop-apiserver   take the API server away; etcd keeps its data
#   start-apiserver  bring it back at the same address
#   restart-apiserver
#   audit            print what user `operator` has asked for, an audit Event a line
#   start-keda       run KEDA's operator and metrics adapter beside it, as user `keda` (with `up --keda`, once
#                    KEDA's definitions are there)
#   compact          forget revisions older than the present: continue tokens of them get
#                    410 Gone, and stale watches too once the API server's own
#                    watch cache is out of the way (restart-apiserver after it,
#                    or `up --no-watch-cache`)
#
#   --name NAME         which one (default: default)
#   --port PORT         on 127.0.0.1 (default: a free one)
#   --kubeconfig PATH   where to write the admin kubeconfig, and the one of user
#                       `operator` as PATH.operator (default: under .state)
#   --controllers LIST  also run kube-controller-manager with these, e.g.
#                       garbage-collector,deployment,replicaset
#   --no-watch-cache    watches and lists go to etcd
#   --etcd-bytes N      etcd takes no larger request (its own default: 1572864)
#   --service-accounts  the ServiceAccount admission plugin is on, which gives pods the tokens of their accounts
#   --audit             what user `operator` asks for is noted, for the command audit
#   --keda              there is a user `keda`, in no group, and other API servers can stand behind this one
#   --large             room and speed for 10,000 pods, as a cluster of that size is set up: controllers may ask
#                       100 times a second each (their own default is 20), etcd may grow to 8 GiB (of 2)
#   --fresh             with up: replace a running one instead of using it
#   --kill              with stop/restart-apiserver: no graceful end
#
# Users: `admin` (system:masters), and `operator`, which is in no group, so that
# it can do exactly what a test's RBAC objects allow. Authorisation is RBAC.
# Without --service-accounts that plugin is off: nothing makes the `default`
# accounts here, and without one a test could not create a Pod.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

command=${1:-}
(($# == 0)) || shift
name=default port='' kubeconfig='' controllers='' watch_cache=true no_accounts=ServiceAccount audit='' keda='' etcd_bytes='' large='' fresh='' all='' kill='' user=admin
while (($#)); do
  case $1 in
    --name) name=$2; shift ;;
    --port) port=$2; shift ;;
    --kubeconfig) kubeconfig=$2; shift ;;
    --controllers) controllers=$2; shift ;;
    --user) user=$2; shift ;;
    --no-watch-cache) watch_cache=false ;;
    --service-accounts) no_accounts='' ;;
    --audit) audit=1 ;;
    --etcd-bytes) etcd_bytes=$2; shift ;;
    --keda) keda=1 ;;
    --large) large=1 ;;
    --fresh) fresh=1 ;;
    --all) all=1 ;;
    --kill) kill=1 ;;
    *) die "apiserver.sh: no option $1" ;;
  esac
  shift
done
[[ $name =~ ^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$ ]] || die "apiserver.sh: bad name $name"

# Clones on one machine share the engine; the hash keeps their servers apart.
clone_id=$(hash_of "$CLONE_DIR" | cut -c1-6)
prefix=corelane-test-$clone_id-$name
dir=$STATE_DIR/apiserver/$name
label=corelane.local/test-apiserver

running() { [[ $(docker inspect -f '{{.State.Running}}' "$1" 2>/dev/null) == true ]]; }

ready() {
  curl -sf -m 5 --cacert "$dir/pki/ca.crt" -H "Authorization: Bearer $(cat "$dir/admin.token")" \
    "https://127.0.0.1:$(cat "$dir/port")/readyz" -o /dev/null
}

await_ready() {
  wait_until 60 ready && return
  say "--- last 30 lines of the API server's log"
  docker logs --tail 30 "$prefix-apiserver" >&2 || true
  die "the API server of $name is not ready after 60 s"
}

# A test server is short-lived; 10 years spare a clock-skewed machine the trouble.
make_pki() {
  local name
  umask 077
  mkdir -p "$dir/pki"
  cd "$dir/pki"
  for name in ca server service-account; do
    openssl ecparam -name prime256v1 -genkey -noout -out $name.key
  done
  openssl req -x509 -new -key ca.key -subj /CN=corelane-test -days 3650 -out ca.crt
  openssl req -new -key server.key -subj /CN=kube-apiserver -out server.csr
  printf 'subjectAltName=DNS:localhost,DNS:apiserver,IP:127.0.0.1\n' >extensions
  openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 3650 -extfile extensions -out server.crt
  for name in admin operator ${keda:+keda}; do
    openssl rand -hex 20 >"$dir/$name.token"
  done
  {
    echo "$(cat "$dir/admin.token"),admin,1,\"system:masters\""
    echo "$(cat "$dir/operator.token"),operator,2"
    [[ -z $keda ]] || echo "$(cat "$dir/keda.token"),keda,3"
  } >tokens.csv
  cat >audit.yaml <<AUDIT
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - { level: Metadata, users: [operator] }
  - { level: None }
AUDIT
  [[ -z $keda ]] || make_keda_pki
}

# certificate NAME CA EXTENSIONS: a key and a certificate of it, by openssl, in this folder
certificate() {
  echo "$3" >extensions
  openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"
  openssl req -new -key "$1.key" -subj "/CN=$1" -out "$1.csr"
  openssl x509 -req -in "$1.csr" -CA "$2.crt" -CAkey "$2.key" -CAcreateserial -days 3650 -extfile extensions -out "$1.crt"
}

# By front-proxy a server behind the API server knows who asks. By keda its two programs know each other.
make_keda_pki() {
  openssl ecparam -name prime256v1 -genkey -noout -out front-proxy-ca.key
  openssl req -x509 -new -key front-proxy-ca.key -subj /CN=front-proxy-ca -days 3650 -out front-proxy-ca.crt
  certificate front-proxy front-proxy-ca extendedKeyUsage=clientAuth
  certificate keda ca subjectAltName=DNS:keda-operator,DNS:keda-metrics-apiserver.keda.svc
  # The names that KEDA looks for.
  mkdir -p certs
  cp ca.crt certs/ca.crt
  cp keda.crt certs/tls.crt
  cp keda.key certs/tls.key
}

write_kubeconfig() { # PATH USER SERVER
  (
    umask 077
    mkdir -p "$(dirname "$1")"
    cat >"$1" <<KUBECONFIG
apiVersion: v1
kind: Config
current-context: $2@$prefix
clusters:
- name: $prefix
  cluster:
    server: $3
    certificate-authority-data: $(base64 <"$dir/pki/ca.crt" | tr -d '\n')
users:
- name: $2
  user:
    token: $(cat "$dir/$2.token")
contexts:
- name: $2@$prefix
  context:
    cluster: $prefix
    user: $2
    namespace: default
KUBECONFIG
  )
}

# Below 32768, where the kernel takes the local ports of outgoing connections
# from, and above those of the tests' programs (free-ports.ts). Docker would choose
# a free one itself, but another one at each restart.
free_port() {
  local candidate
  while :; do
    candidate=$((30000 + RANDOM % 2700))
    (: >"/dev/tcp/127.0.0.1/$candidate") 2>/dev/null || { echo $candidate; return; }
  done
}

# Files go in by docker cp, not as a volume: the engine may run elsewhere (a
# virtual machine on macOS) and not see this folder.
start_container() { # SUFFIX IMAGE OPTIONS... -- COMMAND...
  local container=$prefix-$1 image=$2 arguments=()
  shift 2
  while [[ $1 != -- ]]; do arguments+=("$1"); shift; done
  shift
  docker create --name "$container" --label "$label=$clone_id" --network "$prefix" "${arguments[@]}" \
    --entrypoint "$1" "$image" "${@:2}"
  [[ $1 == etcd ]] || docker cp "$dir/pki" "$container:/pki"
  docker start "$container"
}

start_etcd() {
  # In memory, unsynced: a test's data may be lost, its seconds may not.
  start_container etcd "$etcd_image" --network-alias etcd --tmpfs /data -- \
    etcd --data-dir /data --unsafe-no-fsync --log-level warn \
    --listen-client-urls http://0.0.0.0:2379 --advertise-client-urls http://etcd:2379 \
    ${etcd_bytes:+--max-request-bytes=$etcd_bytes} ${large:+--quota-backend-bytes=$((8 << 30))}
}

start_apiserver() {
  local notes=() behind=()
  [[ -z $audit ]] || notes=(--audit-policy-file=/pki/audit.yaml --audit-log-path=-)
  [[ -z $keda ]] || behind=(
    --requestheader-client-ca-file=/pki/front-proxy-ca.crt --requestheader-allowed-names=front-proxy
    --requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group
    --requestheader-extra-headers-prefix=X-Remote-Extra-
    --proxy-client-cert-file=/pki/front-proxy.crt --proxy-client-key-file=/pki/front-proxy.key)
  # It has some 500 MB; with Go's default of 100, a fifth of its time is garbage collection (measured).
  start_container apiserver "$apiserver_image" --network-alias apiserver --publish "127.0.0.1:$port:6443" \
    --env GOGC=400 --env GOMEMLIMIT=1GiB -- \
    kube-apiserver --etcd-servers=http://etcd:2379 --secure-port=6443 --endpoint-reconciler-type=none \
    --tls-cert-file=/pki/server.crt --tls-private-key-file=/pki/server.key \
    --authorization-mode=RBAC --anonymous-auth=false --token-auth-file=/pki/tokens.csv \
    --service-account-issuer=https://kubernetes.default.svc \
    --service-account-key-file=/pki/service-account.key --service-account-signing-key-file=/pki/service-account.key \
    --service-cluster-ip-range=10.96.0.0/16 --disable-admission-plugins="$no_accounts" \
    --watch-cache="$watch_cache" --profiling=false "${notes[@]}" "${behind[@]}"
}

start_controllers() {
  local list=() controller
  for controller in ${controllers//,/ }; do list+=("${controller%-controller}-controller"); done
  write_kubeconfig "$dir/pki/controllers.kubeconfig" admin https://apiserver:6443
  # Ends when the API server is away for long; like in a cluster it comes again.
  start_container controllers "$controllers_image" --restart on-failure:20 -- \
    kube-controller-manager --kubeconfig=/pki/controllers.kubeconfig --leader-elect=false \
    --controllers="$(IFS=,; echo "${list[*]}")" --service-account-private-key-file=/pki/service-account.key \
    --kube-api-qps=100 --kube-api-burst=200
}

# Its admission webhook is not there. Nothing leaves this machine: KEDA itself asks only what a trigger names.
start_keda() {
  local image options
  [[ -e $dir/keda.token ]] || die "apiserver.sh: $name was started without --keda"
  image=$("$CLUSTER_DIR/keda.sh" | sed -n 's/^KEDA_IMAGE=//p')
  write_kubeconfig "$dir/pki/keda.kubeconfig" keda https://apiserver:6443
  options=(--env POD_NAMESPACE=keda --env KEDA_CLUSTER_OBJECT_NAMESPACE=keda --env WATCH_NAMESPACE=)
  options+=(--restart on-failure:20)
  step "Starting KEDA's operator" "keda-operator-$name" \
    start_container keda-operator "$image" --network-alias keda-operator "${options[@]}" -- \
    keda-operator --kubeconfig=/pki/keda.kubeconfig --cert-dir=/pki/certs --zap-encoder=console
  step "Starting KEDA's metrics adapter" "keda-adapter-$name" \
    start_container keda-adapter "$image" --network-alias keda-metrics-apiserver "${options[@]}" -- \
    keda-adapter --kubeconfig=/pki/keda.kubeconfig --secure-port=443 --cert-dir=/pki/certs \
    --authentication-kubeconfig=/pki/keda.kubeconfig --authorization-kubeconfig=/pki/keda.kubeconfig \
    --lister-kubeconfig=/pki/keda.kubeconfig --metrics-service-address=keda-operator:9666 \
    --client-ca-file=/pki/ca.crt --tls-cert-file=/pki/certs/tls.crt --tls-private-key-file=/pki/certs/tls.key
}

create() {
  docker network create --label "$label=$clone_id" "$prefix"
  make_pki
  echo "$port" >"$dir/port"
  echo "$options" >"$dir/options"
  start_etcd
  start_apiserver
}

remove() { # CLONE-WIDE-FILTER...
  local ids
  ids=$(docker ps -aq --filter "label=$label=$clone_id" "$@")
  # shellcheck disable=SC2086
  [[ -z $ids ]] || docker rm -f -v $ids >/dev/null
  ids=$(docker network ls -q --filter "label=$label=$clone_id" "$@")
  # shellcheck disable=SC2086
  [[ -z $ids ]] || docker network rm $ids >/dev/null
}
remove_this() { remove --filter "name=^/?$prefix(-(etcd|apiserver|controllers|keda-operator|keda-adapter))?\$"; rm -rf "$dir"; }

up() {
  local images wanted=(etcd kube-apiserver) options started=$SECONDS
  options="controllers=$controllers watch_cache=$watch_cache no_accounts=$no_accounts audit=$audit keda=$keda large=$large"
  : "${kubeconfig:=$dir/kubeconfig}"
  state_dir
  lock "apiserver-$clone_id-$name"
  if [[ -z $fresh && $(cat "$dir/options" 2>/dev/null) == "$options" ]] &&
    [[ -z $port || $port == $(cat "$dir/port") ]] && running "$prefix-apiserver" && ready; then
    port=$(cat "$dir/port")
  else
    have openssl && have curl || apt_install openssl curl
    [[ -z $controllers ]] || wanted+=(kube-controller-manager)
    # Not in a condition, nor with <(): a failure must end this script.
    images=$("$CLUSTER_DIR/component-images.sh" "${wanted[@]}")
    { read -r etcd_image; read -r apiserver_image; read -r controllers_image || true; } <<<"$images"
    remove_this
    : "${port:=$(free_port)}"
    trap 'remove_this >/dev/null 2>&1' EXIT
    mkdir -p "$dir"
    step "Starting etcd and API server '$name' (about 4 s)" "apiserver-$name" create
    await_ready
    [[ -z $controllers ]] || step "Starting controllers $controllers" "controllers-$name" start_controllers
    trap - EXIT
    say "API server '$name' is ready after $(elapsed $((SECONDS - started))) at https://127.0.0.1:$port"
  fi
  write_kubeconfig "$kubeconfig" admin "https://127.0.0.1:$port"
  write_kubeconfig "$kubeconfig.operator" operator "https://127.0.0.1:$port"
  echo "$kubeconfig" >"$dir/kubeconfig-path"
  echo "$kubeconfig"
}

must_exist() { [[ -e $dir/port ]] || die "no API server named $name; run apiserver.sh up --name $name"; }

# An API server asked to end waits for open watches, for 30 s and more; two are
# enough for the requests of a test.
stop_apiserver() {
  if [[ -n $kill ]]; then docker kill "$prefix-apiserver"; else docker stop -t 2 "$prefix-apiserver"; fi >/dev/null
}
start_again() { docker start "$prefix-apiserver" >/dev/null; await_ready; }

compact() {
  local revision
  revision=$(docker exec "$prefix-etcd" etcdctl get / --prefix --limit=1 --keys-only -w fields |
    sed -n 's/^"Revision" : //p')
  docker exec "$prefix-etcd" etcdctl compact "$revision" --physical >&2
}

# Without an engine there is nothing to take down but our notes of it.
if [[ $command == down ]] && ! engine_reachable; then
  rm -rf "$STATE_DIR/apiserver"
  exit
fi
[[ $command == kubeconfig ]] || use_engine
case $command in
  up) up ;;
  down)
    if [[ -n $all ]]; then remove; rm -rf "$STATE_DIR/apiserver"; else remove_this; fi ;;
  kubeconfig)
    must_exist
    path=$(cat "$dir/kubeconfig-path")
    if [[ $user == operator ]]; then echo "$path.operator"; else echo "$path"; fi ;;
  stop-apiserver) must_exist; stop_apiserver ;;
  start-apiserver) must_exist; start_again ;;
  restart-apiserver) must_exist; stop_apiserver; start_again ;;
  start-keda) must_exist; start_keda ;;
  compact) must_exist; compact ;;
  audit) must_exist; docker logs "$prefix-apiserver" 2>/dev/null | grep '^{"kind":"Event"' || true ;;
  *) sed -n '2,/^source/{/^source/d;s/^# \{0,1\}//;p;}' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
