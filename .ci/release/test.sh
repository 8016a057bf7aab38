#!/usr/bin/env bash
# test.sh: takes the files in dist/ as a user would, and nothing else of Corelane. Checks their sums, installs the
# command line, sends chart and images through a registry, and installs a kind cluster of its own (about 90 s) from
# images and install.yaml, which then serves an example.
export CORELANE_CLUSTER=corelane-release
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
[[ -e $DIST/SHA256SUMS ]] || die "there is no release in dist/: make release"
use_engine
PATH=$("$CLUSTER_DIR/tools.sh" kind kubectl helm):$PATH
use_crane
NAMESPACE=release-test

work=$(mktemp -d)
cleanup() {
  "$CLUSTER_DIR/cluster.sh" down
  rm -rf "$work"
}
trap cleanup EXIT

check_sums() {
  (cd "$DIST" && sha256sum --check --strict SHA256SUMS)
  # All of them have one.
  [[ $(wc -l <"$DIST/SHA256SUMS") == $(find "$DIST" -maxdepth 1 -type f ! -name SHA256SUMS | wc -l) ]]
}

# In an empty folder, without the clone's Node.js modules.
command_line() {
  local plugin=$work/krew/store
  mkdir -p "$work/npm" "$plugin" "$work/krew/bin"
  (cd "$work/npm" && echo '{}' >package.json &&
    npm install --offline --ignore-scripts --no-audit --no-fund --loglevel=error "$DIST/corelane-cli-$VERSION.tgz")
  PATH=$CLONE_DIR/node_modules/.bin:$PATH
  [[ $("$work/npm/node_modules/.bin/corelane" --version) == "$VERSION" ]]
  # As krew does: unpacks the archive whose sum is in the manifest, and links the program.
  grep -F "sha256: $(sha256sum <"$DIST/kubectl-corelane-$VERSION.tar.gz" | cut -d' ' -f1)" "$DIST/krew-corelane.yaml"
  tar -xzf "$DIST/kubectl-corelane-$VERSION.tar.gz" -C "$plugin"
  ln -s "$plugin/$(sed -n 's/^ *bin: //p' "$DIST/krew-corelane.yaml")" "$work/krew/bin/kubectl-corelane"
  PATH=$work/krew/bin:$PATH
  [[ $(kubectl corelane --version) == "$VERSION" ]]
  kubectl corelane plan --rps 120 --render 80ms --cv 1 --slo p99=400ms
}

# As they will be published; what comes back is what went in.
through_a_registry() {
  local name
  registry_up "$work/registry"
  trap 'kill "$registry_pid"' EXIT # of the subshell of this step
  "$RELEASE_DIR/publish.sh" registry "$registry"
  for name in operator sidecar; do
    crane validate --remote "$registry/$name:$VERSION"
    [[ $(crane manifest "$registry/$name:$VERSION" | grep -o '"architecture":"[a-z0-9]*"' | sort | xargs) == \
      'architecture:amd64 architecture:arm64' ]]
  done
  render "oci://$registry/charts/corelane" --version "$VERSION" --plain-http >"$work/from-registry.yaml"
  render charts/corelane | diff - "$work/from-registry.yaml"
}
render() { helm template corelane "$@" --kube-version 1.36.0 --namespace corelane; }

load_images() {
  local name node
  for name in operator sidecar; do
    for node in $(kind get nodes --name "$CLUSTER_NAME"); do
      docker exec -i "$node" ctr -n k8s.io images import --all-platforms - <"$DIST/corelane-$name-$VERSION.oci.tar"
    done
  done
}

install_all() {
  kubectl apply --server-side -f "$DIST/install.yaml"
  kubectl -n corelane rollout status deployment/corelane --timeout=120s
}

# A page of the example, through the API server.
page() { kubectl get --raw "/api/v1/namespaces/$NAMESPACE/services/http:minimal:http/proxy/?products=5"; }

# On two cores two pods with two whole CPUs each have no room: that is what differs from the example.
SMALL='[{"op": "add", "path": "/spec/template/spec/containers/0/resources", "value": {"requests": {"cpu": "50m"}}}]'

serve() {
  kubectl create namespace $NAMESPACE
  kubectl patch --local -f examples/minimal.yaml --type json -p "$SMALL" -o json | kubectl -n $NAMESPACE apply -f -
  kubectl -n $NAMESPACE wait --for=condition=Ready renderservice/minimal --timeout=120s
  page | grep -i '<html'
  # The images are those of the release.
  kubectl -n $NAMESPACE get pods -o jsonpath='{.items[*].spec.initContainers[*].image}' | grep -F "$REPOSITORY/sidecar:$VERSION"
}

step "Checking the sums of all files" release-test-sums check_sums
step "Installing the command line by npm, and as krew does" release-test-cli command_line
step "Sending images and chart through a registry" release-test-registry through_a_registry
storefront=$(e2e/images.sh storefront | sed -n 's/^STOREFRONT_IMAGE=//p')
export KUBECONFIG
KUBECONFIG=$("$CLUSTER_DIR/cluster.sh" up)
"$CLUSTER_DIR/load-image.sh" "$storefront"
step "Loading the images of the release into the nodes" release-test-load load_images
step "Applying install.yaml" release-test-install install_all
step "Serving an example" release-test-serve serve
say "release: $(wc -l <"$DIST/SHA256SUMS") files, installed from them alone, served"
